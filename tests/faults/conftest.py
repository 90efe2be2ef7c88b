"""The harness is that of the tests with Spark and of `make chaos`."""

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
for name in ("integration", "spark", "chaos"):
    sys.path.insert(0, str(TESTS / name))
