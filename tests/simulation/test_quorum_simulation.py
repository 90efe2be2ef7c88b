"""Whole quorums, with logs, disks and controllers, one seed after the other.

QUORUM_SEEDS=1000 pytest tests/simulation/test_quorum_simulation.py   more of them
QUORUM_SEED=123 pytest tests/simulation/test_quorum_simulation.py     one, exactly as it was
"""

import os

import pytest
from quorum_run import run_seed

SEEDS_PER_TEST = 10


def _seed_groups() -> list[range]:
    if "QUORUM_SEED" in os.environ:
        seed = int(os.environ["QUORUM_SEED"])
        return [range(seed, seed + 1)]
    count = int(os.environ.get("QUORUM_SEEDS", "40"))
    return [range(first, min(first + SEEDS_PER_TEST, count)) for first in range(0, count, SEEDS_PER_TEST)]


@pytest.mark.parametrize("seeds", _seed_groups(), ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_what_was_answered_is_never_lost(seeds: range) -> None:
    for seed in seeds:
        run_seed(seed)
