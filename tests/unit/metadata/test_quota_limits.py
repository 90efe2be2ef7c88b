"""Which quota applies to a client, and how long a client waits that exceeds it."""

import pytest

from sskafka.metadata.image import QuotaEntity
from sskafka.metadata.quota_limits import CLIENT_ID, IP, USER, QuotaLimit, QuotaLimits
from sskafka.metadata.quota_rate import SampledRate, TokenBucket

KEY = "producer_byte_rate"


def entity(**parts: str | None) -> QuotaEntity:
    return tuple(sorted((name.replace("_", "-"), value) for name, value in parts.items()))


ORDER: list[tuple[QuotaEntity, tuple[str | None, str | None]]] = [
    (entity(user="alice", client_id="app"), ("alice", "app")),
    (entity(user="alice", client_id=None), ("alice", "app")),
    (entity(user="alice"), ("alice", None)),
    (entity(user=None, client_id="app"), ("alice", "app")),
    (entity(user=None, client_id=None), ("alice", "app")),
    (entity(user=None), ("alice", None)),
    (entity(client_id="app"), (None, "app")),
    (entity(client_id=None), (None, "app")),
]


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_the_most_specific_quota_applies(first: int) -> None:
    quotas = {known: {KEY: float(number)} for number, (known, _) in enumerate(ORDER) if number >= first}
    assert QuotaLimits(quotas).of_client(KEY, "alice", "app") == QuotaLimit(float(first), ORDER[first][1])


def test_a_quota_for_another_key_does_not_hide_a_less_specific_one() -> None:
    quotas = {entity(user="alice"): {"consumer_byte_rate": 1.0}, entity(user=None): {KEY: 2.0}}
    limits = QuotaLimits(quotas)
    assert limits.of_client(KEY, "alice", "app") == QuotaLimit(2.0, ("alice", None))
    assert limits.has(KEY)
    assert not limits.has("request_percentage")
    assert QuotaLimits({}).of_client(KEY, "alice", "app") is None


def test_an_address_has_its_own_quota_or_the_default() -> None:
    key = "connection_creation_rate"
    limits = QuotaLimits({((IP, "10.0.0.1"),): {key: 5.0}, ((IP, None),): {key: 2.0}})
    assert limits.of_address("10.0.0.1") == 5.0
    assert limits.of_address("10.0.0.2") == 2.0
    assert QuotaLimits({((USER, "u"), (CLIENT_ID, "c")): {KEY: 1.0}}).of_address("10.0.0.1") is None


def test_a_burst_counts_as_an_average_over_the_windows() -> None:
    rate = SampledRate(windows=11, window_ms=1000)
    rate.record(10_000, now_ms=5_000)
    assert rate.throttle_ms(1_000, 5_000) == 0, "10,000 in 10 s"
    rate.record(5_000, now_ms=5_000)
    assert rate.throttle_ms(1_000, 5_000) == pytest.approx(5_000), "1,500 a second are 50 % too many for 10 s"


def test_after_the_throttle_time_the_rate_is_that_of_the_quota() -> None:
    rate = SampledRate(windows=11, window_ms=1000)
    rate.record(30_000, now_ms=0)
    wait_ms = rate.throttle_ms(1_000, 0)
    assert wait_ms == pytest.approx(20_000)
    assert rate.throttle_ms(1_000, wait_ms) == 0


def test_a_steady_client_is_throttled_by_what_it_exceeds() -> None:
    rate, now_ms, sent = SampledRate(windows=11, window_ms=1000), 0.0, 0
    while now_ms < 120_000:
        rate.record(2_000, now_ms)
        sent += 2_000
        now_ms += 100 + rate.throttle_ms(10_000, now_ms)
    assert sent / (now_ms / 1000) == pytest.approx(10_000, rel=0.15)


def test_a_bucket_lends_once_and_fills_at_the_rate() -> None:
    bucket = TokenBucket(burst=10, now_ms=0)
    assert bucket.wait_ms(1, 10, 0) == 0
    bucket.take(15)
    assert bucket.wait_ms(1, 10, 0) == 5_000
    assert bucket.wait_ms(1, 10, 4_000) == pytest.approx(1_000)
    assert bucket.wait_ms(1, 10, 5_000) == 0
    assert bucket.wait_ms(1, 10, 1_000_000) == 0
    bucket.take(10)
    assert bucket.wait_ms(1, 10, 1_000_000) == 0, "no more than the burst was saved up"
    bucket.take(1)
    assert bucket.wait_ms(1, 10, 1_000_000) == 1_000
