"""Transactions under crashes, delays, losses, repetitions and zombies, one seed after the other.

pytest tests/simulation/test_transaction_simulation.py                       40 seeds
TRANSACTION_SEEDS=5000 pytest -n 2 tests/simulation/test_transaction_...     more of them
TRANSACTION_SEED=123 pytest tests/simulation/test_transaction_simulation.py  one, exactly as it was
"""

import pytest
from seeds import name_of, seed_groups
from transaction_run import run_seed


@pytest.mark.parametrize("seeds", seed_groups("TRANSACTION_", 40, 10), ids=name_of)
def test_invariants_hold(seeds: range) -> None:
    for seed in seeds:
        run_seed(seed)


def test_runs_are_not_idle() -> None:
    """Seeds are worth something only while transactions end both ways, and coordinators change."""
    runs = [run_seed(seed) for seed in range(5)]
    outcomes = [outcome for run in runs for outcome in run.outcomes.values()]
    assert outcomes.count(True) > 100
    assert outcomes.count(False) > 30
    assert sum(run.coordinator.crashes for run in runs) > 3
