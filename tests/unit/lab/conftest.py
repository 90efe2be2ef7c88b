"""Makes what several kinds of tests share importable: tests/support, and the clusters of the metadata tests."""

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS / "support"), str(TESTS / "unit" / "metadata")]
