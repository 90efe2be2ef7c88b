"""Fuzzers: random inputs against real brokers, bounded by FUZZ_INPUTS or FUZZ_SECONDS; FUZZ_SEED replays a run."""

import os
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / name) for name in ("integration", "support", "hostile", "fuzz")]

INPUTS = "FUZZ_INPUTS"
SECONDS = "FUZZ_SECONDS"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run nothing unless one of the bounds is given: `make fuzz` and `make fuzz-slice` do."""
    for item in items:
        item.add_marker(pytest.mark.timeout(24 * 3600))
    if not (os.environ.get(INPUTS) or os.environ.get(SECONDS)):
        config.hook.pytest_deselected(items=items)
        items[:] = []
