from sskafka.quorum.raft_counters import MAX_WINDOW_MS, RaftCounters, RecentTimes
from sskafka.raft.ready import LeaderAndEpoch
from sskafka.raft.voters import NO_NODE


def test_the_longest_time_is_forgotten_after_two_windows() -> None:
    times = RecentTimes()
    times.add(70, now_ms=100)
    times.add(30, now_ms=200)
    assert (times.count, times.total_ms, times.longest_ms(300)) == (2, 100, 70)
    assert times.longest_ms(MAX_WINDOW_MS + 300) == 70
    assert times.longest_ms(2 * MAX_WINDOW_MS + 300) == 0


def test_a_commit_is_measured_from_its_append() -> None:
    counters = RaftCounters()
    counters.appended(3, end_offset=3, now_ms=100)
    counters.appended(2, end_offset=5, now_ms=110)
    counters.committed_up_to(4, now_ms=120)
    assert (counters.appended_records, counters.commits.count, counters.commits.total_ms) == (5, 1, 20)
    counters.leadership_changed(LeaderAndEpoch(2, 7), now_ms=130)
    counters.committed_up_to(5, now_ms=140)
    assert counters.commits.count == 1, "what another leader commits is not measured"


def test_an_election_is_the_time_without_a_leader() -> None:
    counters = RaftCounters()
    counters.leadership_changed(LeaderAndEpoch(NO_NODE, 1), now_ms=100)
    counters.leadership_changed(LeaderAndEpoch(NO_NODE, 2), now_ms=150)
    counters.leadership_changed(LeaderAndEpoch(3, 2), now_ms=180)
    counters.leadership_changed(LeaderAndEpoch(1, 3), now_ms=500)
    assert (counters.elections.count, counters.elections.total_ms) == (1, 80)
