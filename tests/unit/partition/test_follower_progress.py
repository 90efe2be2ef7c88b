from sskafka.partition.follower_progress import NEVER_MS, UNKNOWN_OFFSET, FollowerProgress, LastFetch

EPOCH = 5


def fetched(progress: FollowerProgress, offset: int, leader_end: int, now_ms: float) -> None:
    progress.fetched(offset, 0, EPOCH, leader_end, now_ms)


def test_the_position_is_unknown_before_the_first_fetch() -> None:
    progress = FollowerProgress()
    assert progress.log_end_offset == UNKNOWN_OFFSET
    assert not progress.is_caught_up(0, now_ms=0, lag_max_ms=10_000)


def test_a_fetch_at_the_leaders_end_is_caught_up_now() -> None:
    progress = FollowerProgress()
    fetched(progress, 100, 100, now_ms=1000)
    assert progress.last_caught_up_ms == 1000


def test_a_fetch_at_the_end_of_the_previous_fetch_counts_from_then() -> None:
    progress = FollowerProgress()
    fetched(progress, 90, 100, now_ms=1000)
    assert progress.last_caught_up_ms == NEVER_MS
    fetched(progress, 100, 150, now_ms=2000)
    assert progress.last_caught_up_ms == 1000
    fetched(progress, 140, 200, now_ms=3000)
    assert progress.last_caught_up_ms == 1000, "150 was the end one fetch ago"


def test_position_follows_the_fetch_even_backwards() -> None:
    progress = FollowerProgress()
    fetched(progress, 100, 100, now_ms=0)
    fetched(progress, 60, 100, now_ms=1)
    assert progress.log_end_offset == 60


def test_caught_up_within_the_lag_time_or_at_the_log_end() -> None:
    progress = FollowerProgress()
    fetched(progress, 100, 100, now_ms=0)
    assert progress.is_caught_up(200, now_ms=10_000, lag_max_ms=10_000)
    assert not progress.is_caught_up(200, now_ms=10_001, lag_max_ms=10_000)
    assert progress.is_caught_up(100, now_ms=99_999, lag_max_ms=10_000)


def test_a_follower_at_the_end_is_caught_up_while_it_keeps_fetching() -> None:
    progress, last_fetch = FollowerProgress(), LastFetch()
    progress.fetched(100, 0, EPOCH, 100, 1000, last_fetch)
    last_fetch.at_ms = 5000
    assert progress.last_caught_up_ms == 5000


def test_records_appended_after_the_last_fetch_count_from_then() -> None:
    progress, last_fetch = FollowerProgress(), LastFetch()
    progress.fetched(100, 0, EPOCH, 100, 1000, last_fetch)
    last_fetch.at_ms = 5000
    progress.fetched(100, 0, EPOCH, 150, 6000, last_fetch)
    assert progress.last_caught_up_ms == 5000
    last_fetch.at_ms = 9000
    assert progress.last_caught_up_ms == 5000, "it is not at the end any more"


def test_a_session_that_forgets_the_partition_counts_until_then() -> None:
    progress, last_fetch, other = FollowerProgress(), LastFetch(), LastFetch()
    progress.fetched(100, 0, EPOCH, 100, 1000, last_fetch)
    last_fetch.at_ms = 5000
    progress.forgotten_by(other)
    progress.forgotten_by(last_fetch)
    last_fetch.at_ms = 9000
    assert progress.last_caught_up_ms == 5000
