"""Starts on data directories with one file damaged at random: served, or refused in a sentence, never a traceback.

FUZZ_INPUTS=5000 pytest tests/fuzz/damaged     so many starts
FUZZ_SECONDS=120 pytest tests/fuzz/damaged     so long
FUZZ_SEED=123 FUZZ_INPUTS=1 ...                the start that failed
"""

import logging
import os
import sys
import time
from collections import Counter
from pathlib import Path

from damaged_directory import DamagedStarts

PROGRESS_STARTS = 500
INPUTS_MAX = 20_000
"""Of the million inputs of `make fuzz` most are requests: a start takes a tenth of a second."""


def test_damaged_files(tmp_path: Path) -> None:
    logging.getLogger("sskafka").setLevel(logging.CRITICAL)
    first = int(os.environ.get("FUZZ_SEED") or time.time_ns() % 1_000_000_000)
    inputs = min(int(os.environ.get("FUZZ_STARTS") or os.environ.get("FUZZ_INPUTS") or INPUTS_MAX), INPUTS_MAX)
    deadline = time.monotonic() + float(os.environ.get("FUZZ_SECONDS") or 24 * 3600)
    sys.stdout.write(f"\ndamaged files: seeds from {first} on\n")
    starts = DamagedStarts(tmp_path)
    outcomes: Counter[str] = Counter()
    for seed in range(first, first + inputs):
        if time.monotonic() >= deadline:
            break
        outcomes[starts.run(seed)] += 1
        if outcomes.total() % PROGRESS_STARTS == 0:
            sys.stdout.write(f"seed {seed}: {outcomes.total()} starts, {dict(outcomes)}\n")
            sys.stdout.flush()
    sys.stdout.write(f"damaged files: {outcomes.total()} starts, {dict(outcomes)}\n")
    assert outcomes["served"]
