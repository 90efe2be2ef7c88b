"""A quorum under crashes, cuts, delays and losses, one seed after the other.

pytest tests/simulation                   500 seeds
SEEDS=10000 pytest -n 2 tests/simulation  more of them
SEED=123 pytest tests/simulation          one, exactly as it was; the failure shows its last events
"""

import pytest
from raft_run import run_seed
from seeds import name_of, seed_groups


@pytest.mark.parametrize("seeds", seed_groups("", 500, 20), ids=name_of)
def test_invariants_hold(seeds: range) -> None:
    for seed in seeds:
        run_seed(seed)


def test_a_seed_replays_exactly() -> None:
    first, second = run_seed(7), run_seed(7)
    assert list(map(str, first.trace)) == list(map(str, second.trace))
    assert first.history.committed == second.history.committed
    assert first.events == second.events


def test_runs_are_not_idle() -> None:
    """Seeds are worth something only while they elect, commit, take snapshots and lose unsynced records."""
    clusters = [run_seed(seed) for seed in range(10)]
    assert all(cluster.history.acknowledged for cluster in clusters)
    assert sum(len(cluster.history.leaders) for cluster in clusters) > 30
    assert any(member.disk.snapshots for cluster in clusters for member in cluster.members.values())
