"""Classic groups under crashes, losses, delays and new coordinators, one seed after the other.

pytest tests/simulation/test_group_simulation.py                     60 seeds
GROUP_SEEDS=5000 pytest -n 2 tests/simulation/test_group_...         more of them
GROUP_SEED=123 pytest tests/simulation/test_group_simulation.py      one, exactly as it was
"""

import pytest
from group_run import run_seed
from seeds import name_of, seed_groups


@pytest.mark.parametrize("seeds", seed_groups("GROUP_", 60, 10), ids=name_of)
def test_invariants_hold(seeds: range) -> None:
    for seed in seeds:
        run_seed(seed)


def test_runs_are_not_idle() -> None:
    """Seeds are worth something only while groups rebalance, commit and change coordinators."""
    runs = [run_seed(seed) for seed in range(5)]
    assert sum(run.commits for run in runs) > 200
    assert sum(len(run.generations) for run in runs) > 30
    assert sum(run.failovers for run in runs) > 10
