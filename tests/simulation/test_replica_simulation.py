"""Replicated partitions under crashes, lost disks, cuts, delays and losses, one seed after the other.

pytest tests/simulation/test_replica_simulation.py                     60 seeds
REPLICA_SEEDS=2000 pytest -n 2 tests/simulation/test_replica_...       more of them
REPLICA_SEED=123 pytest tests/simulation/test_replica_simulation.py    one, exactly as it was
REPLICA_WRITER_SEEDS, REPLICA_WRITER_SEED                              the same with idempotent producers
"""

import pytest
from replica_run import run_seed
from replica_writer_run import run_writer_seed
from seeds import name_of, seed_groups


@pytest.mark.parametrize("seeds", seed_groups("REPLICA_", 60, 5), ids=name_of)
def test_invariants_hold(seeds: range) -> None:
    for seed in seeds:
        run_seed(seed)


@pytest.mark.parametrize("seeds", seed_groups("REPLICA_WRITER_", 20, 5), ids=name_of)
def test_an_idempotent_producer_writes_once_and_in_order(seeds: range) -> None:
    for seed in seeds:
        run_writer_seed(seed)


def test_a_seed_replays_exactly() -> None:
    first, second = run_seed(3), run_seed(3)
    assert first.history.committed == second.history.committed
    assert first.history.acknowledged == second.history.acknowledged
    assert first.faults == second.faults


def test_runs_are_not_idle() -> None:
    """Seeds are worth something only while records are acknowledged and leaders change."""
    runs = [run_seed(seed) for seed in range(5)]
    assert sum(len(run.history.acknowledged) for run in runs) > 500
    assert sum(run.cluster.controller.state().leader_epoch for run in runs) > 10
