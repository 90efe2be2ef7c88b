"""The times of requests: the whole, and its parts (handled here, set aside, throttled)."""

from sskafka.model.counters import RequestCounters

MS = 1_000_000


def values(counters: RequestCounters) -> dict[str, float]:
    """Return the samples by the metric's name, with the quantile of summaries."""
    found = {}
    for sample in counters.samples():
        quantile = dict(sample.labels).get("quantile", "")
        found[sample.name.removeprefix("kafka_network_requestmetrics_") + quantile] = sample.value
    return found


def test_an_immediate_answer_is_local_time_alone() -> None:
    counters = RequestCounters("Metadata")
    counters.observe(3 * MS)
    found = values(counters)
    assert (found["totaltimems_sum"], found["localtimems_sum"]) == (3, 3)
    assert (found["remotetimems_sum"], found["throttletimems_sum"]) == (0, 0)
    assert {found[f"{part}timems_count"] for part in ("total", "local", "remote", "throttle")} == {1}


def test_the_parts_of_a_parked_request_add_up_to_its_whole() -> None:
    counters = RequestCounters("Fetch")
    counters.observe_parked(received_ns=10 * MS, parked_ns=12 * MS, now_ns=512 * MS)
    found = values(counters)
    assert (found["totaltimems_sum"], found["localtimems_sum"], found["remotetimems_sum"]) == (502, 2, 500)
    assert found["localtimems0.99"] < 5
    assert found["remotetimems0.99"] >= 500


def test_quantiles_of_a_part_count_requests_that_had_none_of_it() -> None:
    counters = RequestCounters("Produce")
    for _ in range(98):
        counters.observe(1 * MS)
    counters.observe_parked(0, 1 * MS, 101 * MS)
    counters.throttled.observe(1000 * MS)
    found = values(counters)
    assert found["remotetimems_count"] == found["totaltimems_count"] == 99
    assert found["remotetimems0.95"] < 0.01
    assert found["remotetimems0.999"] >= 100
    assert found["throttletimems0.95"] < 0.01
    assert found["throttletimems0.999"] >= 1000
    assert sum(counters.total_time().latency_buckets) == 99


def test_an_api_without_requests_has_no_parts() -> None:
    assert not any("localtimems" in name for name in values(RequestCounters("Vote")))


def test_throttled_requests_without_a_response_do_not_make_the_count_negative() -> None:
    counters = RequestCounters("Produce")
    counters.observe(1 * MS)
    for _ in range(3):  # acks=0
        counters.throttled.observe(1 * MS)
    assert values(counters)["throttletimems_count"] == 3
