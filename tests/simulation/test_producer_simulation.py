"""The producer of the client in trouble of all kinds, seed by seed: see producer_run.

pytest tests/simulation/test_producer_simulation.py                   150 seeds
PRODUCER_SEEDS=10000 pytest tests/simulation/test_producer_...        more of them
PRODUCER_SEED=123 pytest tests/simulation/test_producer_simulation.py one, exactly as it was
"""

import pytest
from producer_run import ProducerRun, run_seed
from seeds import name_of, seed_groups


@pytest.mark.parametrize("seeds", seed_groups("PRODUCER_", 150, 50), ids=name_of)
def test_invariants_hold(seeds: range) -> None:
    for seed in seeds:
        run_seed(seed)


def test_runs_are_not_idle() -> None:
    """Seeds are worth something only while records are stored and lost, and transactions end both ways."""
    runs = [run_seed(seed) for seed in range(30)]
    acknowledged = sum(len(run.acknowledged()) for run in runs)
    assert acknowledged > 300
    assert sum(len(run.deliveries) for run in runs) - acknowledged > 50
    outcomes = [transaction.outcome for run in runs for transaction in run.transactions]
    assert outcomes.count(True) > 50
    assert outcomes.count(False) > 30
    assert sum(transaction.has_offsets for run in runs for transaction in run.transactions) > 30
    assert len({header.producer_id for run in runs if type(run) is ProducerRun for header in run.cluster.attempts}) > 2
