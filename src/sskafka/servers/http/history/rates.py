"""Points of a chart from two samples of counters. Pure.

Counters begin at zero when a broker starts, so a counter that is lower than before has no rate. lib/rates.js of the
console has the same rules for the samples that a page takes itself.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from sskafka.client.broker_load import TopicUsage
from sskafka.wire.messages.describe_broker_load import DescribeBrokerLoadResponse

WAITING: Final = frozenset({"Fetch", "JoinGroup", "SyncGroup", "FetchSnapshot"})
"""Requests that wait on purpose, for records or for members: their latency says little about a broker."""
_PRODUCE = "Produce"


class LoadSample(NamedTuple):
    time_ms: int
    brokers: Mapping[int, DescribeBrokerLoadResponse]


class LoadPoint(NamedTuple):
    """Rates per second over all brokers, and latencies; None: not known."""

    time_ms: int
    messages_in: float | None
    bytes_in: float | None
    bytes_out: float | None
    replication: float | None
    requests: float | None
    produce_p99_ms: float | None
    other_p99_ms: float | None


class TopicPoint(NamedTuple):
    time_ms: int
    messages_in: float | None
    bytes_in: float | None
    bytes_out: float | None
    log_bytes: int


class _ApiGrowth(NamedTuple):
    name: str
    requests: int
    buckets: tuple[int, ...]


def load_point(before: LoadSample, now: LoadSample) -> LoadPoint:
    """Return the traffic between two samples, of the brokers that are in both."""
    pairs = [(before.brokers[node_id], load) for node_id, load in now.brokers.items() if node_id in before.brokers]
    seconds = (now.time_ms - before.time_ms) / 1000
    apis = [growth for old, new in pairs for growth in _growths(old, new)]
    others = (one.buckets for one in apis if one.name != _PRODUCE and one.name not in WAITING)
    return LoadPoint(
        now.time_ms,
        _total(((old.messages_in, new.messages_in) for old, new in pairs), seconds),
        _total(((old.bytes_in, new.bytes_in) for old, new in pairs), seconds),
        _total(((old.bytes_out, new.bytes_out) for old, new in pairs), seconds),
        _total(((old.replication_bytes_out, new.replication_bytes_out) for old, new in pairs), seconds),
        sum(one.requests for one in apis) / seconds if pairs and seconds > 0 else None,
        _p99_ms(one.buckets for one in apis if one.name == _PRODUCE),
        _p99_ms(others),
    )


def topic_point(before: TopicUsage, before_ms: int, now: TopicUsage, now_ms: int) -> TopicPoint:
    seconds = (now_ms - before_ms) / 1000
    return TopicPoint(
        now_ms,
        rate(before.messages_in, now.messages_in, seconds),
        rate(before.bytes_in, now.bytes_in, seconds),
        rate(before.bytes_out, now.bytes_out, seconds),
        now.log_bytes,
    )


def rate(before: int, now: int, seconds: float) -> float | None:
    """Return the growth of a counter per second, or None if it has begun again or no time has passed."""
    return (now - before) / seconds if now >= before and seconds > 0 else None


def percentile_us(buckets: Sequence[int], share: float) -> float | None:
    """Return the latency in microseconds below which this share of the responses stayed; None without responses.

    Bucket n has the responses of less than 2**n microseconds and not less than half of that."""
    total = sum(buckets)
    seen = 0
    for exponent, count in enumerate(buckets):
        if count and seen + count >= share * total:
            low = 0.0 if exponent == 0 else 2.0 ** (exponent - 1)
            return low + (2.0**exponent - low) * ((share * total - seen) / count)
        seen += count
    return None


def _growths(before: DescribeBrokerLoadResponse, now: DescribeBrokerLoadResponse) -> Iterable[_ApiGrowth]:
    """Yield what the APIs of one broker have done since; an API whose counter is lower is left out."""
    known = {one.name: one for one in before.requests}
    for one in now.requests:
        old = known.get(one.name)
        if old is None:
            yield _ApiGrowth(one.name, one.requests, tuple(one.latency_buckets))
        elif one.requests >= old.requests:
            pairs = zip(old.latency_buckets, one.latency_buckets, strict=True)
            yield _ApiGrowth(one.name, one.requests - old.requests, tuple(max(0, new - less) for less, new in pairs))


def _total(pairs: Iterable[tuple[int, int]], seconds: float) -> float | None:
    known = [one for one in (rate(before, now, seconds) for before, now in pairs) if one is not None]
    return sum(known) if known else None


def _p99_ms(every: Iterable[tuple[int, ...]]) -> float | None:
    latency_us = percentile_us([sum(bucket) for bucket in zip(*every, strict=True)], 0.99)
    return None if latency_us is None else latency_us / 1000
