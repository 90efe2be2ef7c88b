"""Whole quorums, with logs, disks and controllers, one seed after the other.

QUORUM_SEEDS=1000 pytest tests/simulation/test_quorum_simulation.py   more of them
QUORUM_SEED=123 pytest tests/simulation/test_quorum_simulation.py     one, exactly as it was
"""

import pytest
from quorum_run import run_seed
from seeds import name_of, seed_groups


@pytest.mark.parametrize("seeds", seed_groups("QUORUM_", 40, 10), ids=name_of)
def test_what_was_answered_is_never_lost(seeds: range) -> None:
    for seed in seeds:
        run_seed(seed)
