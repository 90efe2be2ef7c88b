"""Plain counters for the hot path, named as Kafka's metrics when they are collected.

A counter is an attribute that the code adds to; nothing is computed until `samples` is called.
Latencies go into buckets that double from one microsecond on, so that recording one is a shift and an add.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

_LATENCY_BUCKETS: Final = 28  # 2**27 us is more than two minutes


Labels: TypeAlias = tuple[tuple[str, str], ...]


class Sample(NamedTuple):
    name: str
    labels: Labels
    value: float


class TopicCounters:
    """Bytes and records of one topic on this broker, in and out."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "failed_fetch_requests",
        "failed_produce_requests",
        "fetch_requests",
        "messages_in",
        "produce_requests",
    )

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.bytes_rejected = 0
        self.produce_requests = 0
        self.fetch_requests = 0
        self.failed_produce_requests = 0
        self.failed_fetch_requests = 0

    def samples(self, topic: str) -> Iterator[Sample]:
        labels = (("topic", topic),)
        for metric, attribute in _TOPIC_METRICS:
            yield Sample(f"kafka_server_brokertopicmetrics_{metric}_total", labels, getattr(self, attribute))


_TOPIC_METRICS = (
    ("messagesin", "messages_in"),
    ("bytesin", "bytes_in"),
    ("bytesout", "bytes_out"),
    ("bytesrejected", "bytes_rejected"),
    ("totalproducerequests", "produce_requests"),
    ("totalfetchrequests", "fetch_requests"),
    ("failedproducerequests", "failed_produce_requests"),
    ("failedfetchrequests", "failed_fetch_requests"),
)


class Latencies:
    """How long something took: the sum, and counts in buckets that double."""

    __slots__ = ("latency_buckets", "total_time_ns")

    def __init__(self) -> None:
        self.total_time_ns = 0
        self.latency_buckets = [0] * _LATENCY_BUCKETS

    def observe(self, elapsed_ns: int) -> None:
        self.total_time_ns += elapsed_ns
        bucket = (elapsed_ns // 1000).bit_length()
        self.latency_buckets[bucket if bucket < _LATENCY_BUCKETS else -1] += 1

    def add(self, other: "Latencies") -> None:
        """Count the observations of `other` here, too."""
        self.total_time_ns += other.total_time_ns
        for bucket, count in enumerate(other.latency_buckets):
            self.latency_buckets[bucket] += count

    def add_zeros(self, count: int) -> None:
        """Count `count` observations that took no time."""
        self.latency_buckets[0] += count

    def percentile_us(self, fraction: float) -> int:
        """Return the upper bound of the bucket that contains this percentile; 0 before the first response."""
        total = sum(self.latency_buckets)
        seen = 0
        for exponent, count in enumerate(self.latency_buckets):
            seen += count
            if total and seen >= fraction * total:
                return 1 << exponent
        return 0

    def summary(self, name: str, labels: Labels = ()) -> Iterator[Sample]:
        """Yield a summary in milliseconds. Nothing but count and sum is yielded before the first observation."""
        count = sum(self.latency_buckets)
        for quantile in _QUANTILES if count else ():
            value = self.percentile_us(float(quantile)) / 1000
            yield Sample(name, (*labels, ("quantile", quantile)), value)
        yield Sample(name + "_sum", labels, self.total_time_ns / 1e6)
        yield Sample(name + "_count", labels, count)


_QUANTILES = ("0.50", "0.75", "0.95", "0.99", "0.999")


class RequestCounters(Latencies):
    """Requests of one API: how many, how they failed, how long they took from the first byte to the response.

    As latencies, this object has the requests that their handler answered at once. Requests that were parked are
    counted in three parts beside it, and throttled ones in a fourth: so an immediate answer costs one observation.

        TotalTimeMs     this + parked_total
        LocalTimeMs     this + parked_local     the time until the handler returned
        RemoteTimeMs    zeros + parked_remote   the time from then to the response
        ThrottleTimeMs  zeros + throttled
    """

    __slots__ = (
        "errors",
        "name",
        "parked_local",
        "parked_remote",
        "parked_total",
        "request_bytes",
        "requests",
        "throttled",
    )

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.requests = 0
        self.request_bytes = 0
        self.errors = 0
        self.parked_total = Latencies()
        self.parked_local = Latencies()
        self.parked_remote = Latencies()
        self.throttled = Latencies()

    def observe_parked(self, received_ns: int, parked_ns: int, now_ns: int) -> None:
        """Count a request that was parked and is answered now."""
        self.parked_total.observe(now_ns - received_ns)
        self.parked_local.observe(parked_ns - received_ns)
        self.parked_remote.observe(now_ns - parked_ns)

    def total_time(self) -> Latencies:
        return _sum_of(self, self.parked_total)

    def samples(self) -> Iterator[Sample]:
        labels = (("request", self.name),)
        prefix = "kafka_network_requestmetrics_"
        yield Sample(prefix + "requests_total", labels, self.requests)
        yield Sample(prefix + "errors_total", labels, self.errors)
        yield Sample(prefix + "requestbytes_total", labels, self.request_bytes)
        total = self.total_time()
        yield from total.summary(prefix + "totaltimems", labels)
        count = sum(total.latency_buckets)
        if count:
            yield from _sum_of(self, self.parked_local).summary(prefix + "localtimems", labels)
            yield from _with_zeros(self.parked_remote, count).summary(prefix + "remotetimems", labels)
            yield from _with_zeros(self.throttled, count).summary(prefix + "throttletimems", labels)


def _sum_of(*parts: Latencies) -> Latencies:
    whole = Latencies()
    for part in parts:
        whole.add(part)
    return whole


def _with_zeros(part: Latencies, count: int) -> Latencies:
    """Return the latencies of `count` requests, of which those in `part` waited and the others did not."""
    whole = _sum_of(part)
    whole.add_zeros(max(0, count - sum(part.latency_buckets)))
    return whole


class Traffic:
    """Requests that this node sends to other nodes, and their responses."""

    __slots__ = ("bytes_received", "bytes_sent", "requests", "responses")

    def __init__(self) -> None:
        self.requests = 0
        self.responses = 0
        self.bytes_sent = 0
        self.bytes_received = 0

    def samples(self, prefix: str) -> Iterator[Sample]:
        yield Sample(prefix + "request_total", (), self.requests)
        yield Sample(prefix + "response_total", (), self.responses)
        yield Sample(prefix + "outgoing_byte_total", (), self.bytes_sent)
        yield Sample(prefix + "incoming_byte_total", (), self.bytes_received)


class ConnectionCounters:
    """Counters of the connections to one listener."""

    __slots__ = (
        "bytes_received",
        "bytes_sent",
        "closed",
        "failed_authentications",
        "listener",
        "opened",
        "reaped",
        "refused",
    )

    def __init__(self, listener: str = "") -> None:
        self.listener = listener
        self.opened = 0
        self.closed = 0
        self.refused = 0
        self.reaped = 0
        self.bytes_received = 0
        self.bytes_sent = 0
        self.failed_authentications = 0

    def samples(self) -> Iterator[Sample]:
        prefix, labels = "kafka_server_socket_server_metrics_", (("listener", self.listener),)
        yield Sample(prefix + "connection_count", labels, self.opened - self.closed)
        yield Sample(prefix + "connection_creation_total", labels, self.opened)
        yield Sample(prefix + "connection_close_total", labels, self.closed)
        yield Sample(prefix + "connection_refused_total", labels, self.refused)
        yield Sample(prefix + "expired_connections_killed_count", labels, self.reaped)
        yield self.failed_authentication_sample()
        yield Sample(prefix + "incoming_byte_total", labels, self.bytes_received)
        yield Sample(prefix + "outgoing_byte_total", labels, self.bytes_sent)

    def failed_authentication_sample(self) -> Sample:
        name = "kafka_server_socket_server_metrics_failed_authentication_total"
        return Sample(name, (("listener", self.listener),), self.failed_authentications)


class AcceptorCounters:
    """How often a listener had to stop accepting connections, and whether it does so now."""

    __slots__ = ("is_paused", "name", "pauses")

    def __init__(self, name: str) -> None:
        self.name = name
        self.pauses = 0
        self.is_paused = False

    def samples(self) -> Iterator[Sample]:
        labels = (("listener", self.name),)
        yield Sample("kafka_network_acceptor_paused", labels, int(self.is_paused))
        yield Sample("kafka_network_acceptor_pauses_total", labels, self.pauses)
