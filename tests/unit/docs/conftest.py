"""Makes what several kinds of tests share importable: tests/support."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
