"""The history of the cluster: rates from counters, and what is kept however many topics and groups there are."""

from sskafka.client.broker_load import TopicUsage
from sskafka.servers.http.history.rates import LoadSample, load_point, percentile_us, rate, topic_point
from sskafka.servers.http.history.series import (
    GAP_MS,
    GROUPS_MAX,
    INTERVAL_MS,
    SPAN_MS,
    TOPICS_MAX,
    History,
    LagPoint,
    WatchedSeries,
)
from sskafka.wire.messages.describe_broker_load import DescribeBrokerLoadResponse, RequestLoad

BUCKETS = 20


def buckets(**counts: int) -> list[int]:
    """Buckets by their exponent: `e10=3` are three responses between half a millisecond and one."""
    return [counts.get(f"e{exponent}", 0) for exponent in range(BUCKETS)]


def load(counter: int, *apis: RequestLoad) -> DescribeBrokerLoadResponse:
    return DescribeBrokerLoadResponse(
        messages_in=counter,
        bytes_in=10 * counter,
        bytes_out=20 * counter,
        replication_bytes_out=30 * counter,
        requests=list(apis),
    )


def sample(time_ms: int, **brokers: DescribeBrokerLoadResponse) -> LoadSample:
    return LoadSample(time_ms, {int(name[1:]): answer for name, answer in brokers.items()})


def test_rates_are_added_up_over_brokers() -> None:
    before, now = sample(0, b1=load(0), b2=load(100)), sample(2_000, b1=load(20), b2=load(140))
    point = load_point(before, now)
    assert (point.time_ms, point.messages_in, point.bytes_in, point.bytes_out) == (2_000, 30, 300, 600)
    assert (point.replication, point.requests) == (900, 0)


def test_a_broker_that_has_started_again_or_is_new_has_no_rate() -> None:
    before = sample(0, b1=load(1_000), b2=load(0))
    now = sample(1_000, b1=load(5), b2=load(7), b3=load(1_000_000))
    assert load_point(before, now).messages_in == 7
    assert load_point(sample(0, b1=load(9)), sample(1_000, b1=load(5))).messages_in is None
    nobody = load_point(sample(0, b1=load(9)), sample(1_000))
    assert (nobody.messages_in, nobody.requests, nobody.produce_p99_ms) == (None, None, None)


def test_latencies_are_of_the_interval_and_not_of_requests_that_wait() -> None:
    before = sample(0, b1=load(0, RequestLoad("Produce", 100, 0, buckets(e19=100))))
    produce = RequestLoad("Produce", 200, 0, buckets(e19=100, e10=100))
    fetch = RequestLoad("Fetch", 50, 0, buckets(e19=50))
    metadata = RequestLoad("Metadata", 10, 0, buckets(e11=10))
    point = load_point(before, sample(1_000, b1=load(0, produce, fetch, metadata)))
    assert point.requests == 160
    assert point.produce_p99_ms is not None
    assert 0.512 < point.produce_p99_ms < 1.024
    assert point.other_p99_ms is not None
    assert 1.024 < point.other_p99_ms < 2.048


def test_percentiles() -> None:
    assert percentile_us([0, 0, 0], 0.99) is None
    assert percentile_us([10], 1.0) == 1.0
    assert percentile_us([0, 0, 4, 0], 0.5) == 3.0
    assert rate(5, 4, 1.0) is None
    assert rate(5, 5, 0.0) is None


def test_the_points_of_the_cluster_are_bounded_and_have_gaps() -> None:
    history = History()
    for number in range(2 * SPAN_MS // INTERVAL_MS):
        history.add(sample(number * INTERVAL_MS, b1=load(number)))
    assert len(history.points) == SPAN_MS // INTERVAL_MS
    newest_ms = history.points[-1].time_ms
    history.add(sample(newest_ms, b1=load(10**9)))
    assert history.points[-1].time_ms == newest_ms, "a clock that stands still adds no point"
    history.add(sample(newest_ms + GAP_MS + 1, b1=load(10**9)))
    assert history.points[-1].time_ms == newest_ms, "nothing is known of the time in between"
    history.add(sample(newest_ms + GAP_MS + 1 + INTERVAL_MS, b1=load(10**9 + 5)))
    assert history.points[-1].messages_in == 1


def test_only_series_that_somebody_looks_at_are_kept() -> None:
    series: WatchedSeries[int] = WatchedSeries(3, INTERVAL_MS)
    series.add("nobody", 1)
    for name in ("a", "b", "c"):
        assert series.look(name, 0) == ()
        series.add(name, 7)
    series.look("a", 10)
    series.look("d", 10)
    assert series.watched(10) == ["c", "a", "d"], "the one that was looked at longest ago is gone"
    assert series.look("a", 10) == (7,)
    assert series.watched(SPAN_MS + 5) == ["d", "a"]
    assert series.watched(SPAN_MS + 11) == []
    assert series.look("a", SPAN_MS + 11) == ()


def test_topics_and_groups_are_bounded() -> None:
    history = History()
    for number in range(1_000):
        history.topics.look(f"topic-{number}", number)
        history.groups.look(f"group-{number}", number)
    assert (len(history.topics.watched(1_000)), len(history.groups.watched(1_000))) == (TOPICS_MAX, GROUPS_MAX)
    for number in range(1_000):
        history.groups.add("group-999", LagPoint(number, number, None))
    assert len(history.groups.look("group-999", 1_000)) == 60


def test_rates_of_a_topic() -> None:
    history = History()
    history.topics.look("orders", 0)
    for second, count in ((5, 100), (10, 150), (15, 20)):
        history.add_usages(second * 1000, {"orders": TopicUsage(count, count * 10, 0, count), "others": TopicUsage()})
    rates = [(point.messages_in, point.bytes_in, point.log_bytes) for point in history.topics.look("orders", 0)]
    assert rates == [(10, 100, 150), (None, None, 20)]
    assert topic_point(TopicUsage(), 0, TopicUsage(), 0).messages_in is None
