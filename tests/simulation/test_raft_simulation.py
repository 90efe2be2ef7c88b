"""A quorum under crashes, cuts, delays and losses, one seed after the other.

pytest tests/simulation                   500 seeds
SEEDS=10000 pytest -n 2 tests/simulation  more of them
SEED=123 pytest tests/simulation          one, exactly as it was; the failure shows its last events
"""

import pytest
from raft_cluster import Cluster, Weather
from raft_run import DamagedRun, run_seed
from seeds import name_of, seed_groups

from sskafka.raft.timing import Timing


@pytest.mark.parametrize("seeds", seed_groups("", 500, 20), ids=name_of)
def test_invariants_hold(seeds: range) -> None:
    for seed in seeds:
        run_seed(seed)


@pytest.mark.parametrize("seeds", seed_groups("damaged", 100, 20), ids=name_of)
def test_invariants_hold_with_any_number_of_damaged_logs(seeds: range) -> None:
    for seed in seeds:
        DamagedRun(seed).execute()


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


@pytest.mark.parametrize("seed", range(20))
def test_a_dead_leader_is_replaced_without_waiting_for_timeouts(seed: int) -> None:
    """In calm weather, with the default timeouts: the fetch timeout alone is 2 s."""
    cluster = Cluster(seed, 3 + 2 * (seed % 2), 0, Weather(silent_percent=0), Timing())
    cluster.start_all()
    assert cluster.run_until(10_000, lambda: len(cluster.history.committed) > 0)
    cluster.run_until(cluster.now_ms + 1000)
    (leader,) = cluster.leaders()
    epoch, killed_ms = leader.node.epoch, cluster.now_ms
    cluster.crash(leader)
    is_elected = cluster.run_until(
        killed_ms + 1000, lambda: any(member.node.epoch > epoch for member in cluster.leaders())
    )
    assert is_elected, cluster.describe_trace()
