"""Transactions and offsets of correct producers while brokers crash and messages are late or lost, seed by seed.

pytest tests/simulation/test_exactly_once_simulation.py                        200 seeds
EXACTLY_ONCE_SEEDS=5000 pytest -n 2 tests/simulation/test_exactly_once_...     more of them
EXACTLY_ONCE_SEED=123 pytest tests/simulation/test_exactly_once_simulation.py  one, exactly as it was
"""

import pytest
from exactly_once_run import run_seed
from seeds import name_of, seed_groups


@pytest.mark.parametrize("seeds", seed_groups("EXACTLY_ONCE_", 200, 20), ids=name_of)
def test_invariants_hold(seeds: range) -> None:
    for seed in seeds:
        run_seed(seed)


def test_runs_are_not_idle() -> None:
    """Seeds are worth something only while transactions end both ways, leaders change and producers die."""
    runs = [run_seed(seed) for seed in range(8)]
    transactions = [item for run in runs for history in run.histories.values() for item in history.transactions]
    outcomes = [item.outcome for item in transactions]
    assert outcomes.count(True) > 100
    assert outcomes.count(False) > 30
    assert outcomes.count(None) > 10
    assert sum(item.has_offset for item in transactions) > 50
    assert sum(run.cluster.elections for run in runs) > 50
    assert sum(run.exhausted_ids for run in runs) > 3
