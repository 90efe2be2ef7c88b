"""The scenarios, with their arguments for the load generator, and the extent of a run."""

from dataclasses import dataclass
from enum import Enum

LARGE_BATCH_BYTES = 1_000_000
SMALL_BATCH_BYTES = 16_384
PARTITIONS_MAX = 16


class Load(Enum):
    """The loads of benchmarks/load."""

    PRODUCE = "produce"
    CONSUME = "consume"
    REQUESTS = "requests"
    LATENCY = "latency"


@dataclass(frozen=True, slots=True)
class Extent:
    """Limits of a run, in number and time."""

    rounds: int
    warm_up_rounds: int
    seconds_max: int
    round_bytes_max: int
    round_messages_max: int
    startups: int
    burn_in_seconds: int


FULL = Extent(
    rounds=5,
    warm_up_rounds=1,
    seconds_max=3,
    round_bytes_max=1_000_000_000,
    round_messages_max=8_000_000,
    startups=3,
    burn_in_seconds=10,
)
QUICK = Extent(
    rounds=3,
    warm_up_rounds=1,
    seconds_max=1,
    round_bytes_max=500_000_000,
    round_messages_max=2_000_000,
    startups=1,
    burn_in_seconds=3,
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One measurement."""

    key: str
    title: str
    load: Load
    message_bytes: int
    batch_bytes: int = LARGE_BATCH_BYTES
    connections: int = 1
    in_flight: int = 1
    acks: str = "1"
    tls: bool = False

    @property
    def partitions(self) -> int:
        """1, to measure a single log; tiny requests use one partition per connection, to avoid lock contention."""
        return min(self.connections, PARTITIONS_MAX)

    def messages_max(self, extent: Extent) -> int:
        return min(extent.round_messages_max, extent.round_bytes_max // self.message_bytes)

    def bytes_written_max(self, extent: Extent) -> int:
        """Return how much a round adds to the page cache, if that is significant."""
        return self.messages_max(extent) * self.message_bytes if self.load is Load.PRODUCE else 0

    def arguments(self, extent: Extent) -> dict[str, int | str]:
        """Return the options of the load generator, without address and topic."""
        common: dict[str, int | str] = {
            "--message-bytes": self.message_bytes,
            "--seconds": extent.seconds_max,
            "--acks": self.acks,
        }
        match self.load:
            case Load.PRODUCE:
                return common | {"--batch-bytes": self.batch_bytes, "--messages": self.messages_max(extent)}
            case Load.CONSUME:
                return common | {"--seconds": 30, "--messages": self.messages_max(extent)}
            case Load.LATENCY:
                return common | {"--rate": 1000}
            case Load.REQUESTS:
                return common | {
                    "--connections": self.connections,
                    "--in-flight": self.in_flight,
                    "--partitions": self.partitions,
                }


SCENARIOS = (
    Scenario("produce-100b", "produce 100 B, large batches", Load.PRODUCE, 100),
    Scenario("produce-1kb", "produce 1 KB, large batches", Load.PRODUCE, 1000),
    Scenario("produce-100b-16k", "produce 100 B, 16 KB batches", Load.PRODUCE, 100, SMALL_BATCH_BYTES),
    Scenario("produce-1kb-16k", "produce 1 KB, 16 KB batches", Load.PRODUCE, 1000, SMALL_BATCH_BYTES),
    Scenario("consume-100b", "consume 100 B", Load.CONSUME, 100),
    Scenario("consume-1kb", "consume 1 KB", Load.CONSUME, 1000),
    Scenario("tiny-1", "tiny requests, 1 connection", Load.REQUESTS, 10),
    Scenario("tiny-16", "tiny requests, 16 connections", Load.REQUESTS, 10, connections=16),
    Scenario("tiny-64", "tiny requests, 64 connections", Load.REQUESTS, 10, connections=64),
    Scenario("tiny-4x50", "tiny requests, 4 x 50 in flight", Load.REQUESTS, 10, connections=4, in_flight=50),
    Scenario("latency", "produce to consume, 1000/s", Load.LATENCY, 100),
)

# At a listener with the protocol SSL, of brokers of their own: those of the other scenarios do not load TLS.
TLS_SCENARIOS = (
    Scenario("tls-produce-1kb", "TLS produce 1 KB, large batches", Load.PRODUCE, 1000, tls=True),
    Scenario("tls-consume-1kb", "TLS consume 1 KB", Load.CONSUME, 1000, tls=True),
    Scenario("tls-tiny-16", "TLS tiny requests, 16 connections", Load.REQUESTS, 10, connections=16, tls=True),
    Scenario("tls-tiny-4x50", "TLS tiny, 4 x 50 in flight", Load.REQUESTS, 10, connections=4, in_flight=50, tls=True),
)

# Three brokers; every record is on all of them before it is acknowledged.
REPLICATED_SCENARIOS = (
    Scenario("replicated-1kb", "replicated 1 KB, large batches", Load.PRODUCE, 1000, acks="all"),
    Scenario("replicated-1kb-16k", "replicated 1 KB, 16 KB batches", Load.PRODUCE, 1000, SMALL_BATCH_BYTES, acks="all"),
    Scenario("replicated-tiny-1", "replicated tiny, 1 connection", Load.REQUESTS, 10, acks="all"),
    Scenario("replicated-tiny-16", "replicated tiny, 16 connections", Load.REQUESTS, 10, connections=16, acks="all"),
    Scenario(
        "replicated-tiny-4x50",
        "replicated tiny, 4 x 50 in flight",
        Load.REQUESTS,
        10,
        connections=4,
        in_flight=50,
        acks="all",
    ),
)

# Long enough for the JVM to compile its request path before the measurement.
BURN_IN = Scenario("burn-in", "burn-in", Load.REQUESTS, 10, connections=16, in_flight=4)
