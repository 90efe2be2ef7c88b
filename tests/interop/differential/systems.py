"""The two systems that are asked the same: Apache Kafka and SSKafka, one broker or a cluster of three each.

Both get the same properties. Settings whose defaults differ (ADR 0006) are set here, so they do not show.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.apache_kafka import KafkaLibs
from benchmarks.brokers import HOST, BrokerKind, apache_kafka_kind, sskafka_kind
from benchmarks.clusters import ClusterKind

from differential.exchange import Connection, Dropped
from differential.messages import build
from sskafka.wire.apis import API_BY_KEY
from sskafka.wire.schema import Versions

APACHE_KAFKA, SSKAFKA = "Apache Kafka", "SSKafka"
CLUSTER_SIZE = 3
GROUP, TRANSACTION = 0, 1
COORDINATOR_SECONDS_MAX = 30.0

SETTINGS = {
    # Records in the scripts have fixed, old timestamps.
    "log.retention.ms": "-1",
    # Groups and transactions need few partitions here, and start sooner with them.
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    # A script has producers forgotten, which is looked for this often.
    "producer.id.expiration.check.interval.ms": "200",
    # ADR 0006: defaults that differ.
    "broker.rack": "rack-1",
    "replica.lag.time.max.ms": "30000",
    "broker.session.timeout.ms": "9000",
}

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class System:
    """One of the two, up and running."""

    name: str
    addresses: dict[int, tuple[str, int]]
    """By broker id."""
    served: dict[int, Versions]
    """By API key, as broker 1 advertises it."""
    data: Path
    """Log directory of broker 1."""

    @property
    def bootstrap(self) -> str:
        host, port = self.addresses[1]
        return f"{host}:{port}"


@dataclass(frozen=True, slots=True)
class Pair:
    kafka: System
    sskafka: System

    def on_both(self, run: Callable[[System], Result]) -> tuple[Result, Result]:
        """Run a function against each system at the same time; the results in the order Apache Kafka, SSKafka."""
        with ThreadPoolExecutor(2) as threads:
            first, second = threads.submit(run, self.kafka), threads.submit(run, self.sskafka)
            return first.result(), second.result()

    def common_versions(self, api_key: int) -> list[int]:
        """The versions of an API that both systems advertise and that have a schema (Produce 0 to 2 have none)."""
        theirs, ours = self.kafka.served.get(api_key), self.sskafka.served.get(api_key)
        if theirs is None or ours is None:
            return []
        schema = API_BY_KEY[api_key]
        first = max(theirs.first, ours.first, schema.min_version)
        return list(range(first, min(theirs.last, ours.last, schema.max_version) + 1))


@contextlib.contextmanager
def running_pair(
    libs: KafkaLibs, directory: Path, brokers: int = 1, more_settings: Mapping[str, str] | None = None
) -> Iterator[Pair]:
    """Start both systems, Apache Kafka first because it takes longest."""
    settings = {**SETTINGS, **(more_settings or {})}
    with contextlib.ExitStack() as stack:
        systems = []
        for name, kind in ((APACHE_KAFKA, apache_kafka_kind(libs)), (SSKAFKA, sskafka_kind())):
            home = directory / name.replace(" ", "-")
            systems.append(stack.enter_context(_running(name, kind, home, brokers, settings)))
        yield Pair(*systems)


@contextlib.contextmanager
def _running(
    name: str, kind: BrokerKind, directory: Path, brokers: int, settings: Mapping[str, str]
) -> Iterator[System]:
    chosen = kind if brokers == 1 else ClusterKind(kind, brokers)
    with chosen.running(directory, settings) as broker:
        yield system_at(name, broker.port)


def system_at(name: str, port: int) -> System:
    """Describe the system that answers at a port of this host."""
    with Connection(HOST, port) as connection:
        versions = _require(connection.ask(build("ApiVersions"), 0))
        metadata = _require(connection.ask(build("Metadata", topics=None), 1))
        for kind in (GROUP, TRANSACTION):
            _make_coordinators(connection, kind)
        directories = _require(connection.ask(build("DescribeLogDirs", topics=[]), 1))
    return System(
        name,
        {broker.node_id: (broker.host, broker.port) for broker in metadata.brokers},
        {api.api_key: Versions(api.min_version, api.max_version) for api in versions.api_keys},
        Path(directories.results[0].log_dir),
    )


def _make_coordinators(connection: Connection, kind: int) -> None:
    """Have the internal topic of coordinators created, as it is when somebody first looks for one."""
    deadline = time.monotonic() + COORDINATOR_SECONDS_MAX
    while time.monotonic() < deadline:
        found = _require(connection.ask(build("FindCoordinator", key_type=kind, coordinator_keys=["any"]), 4))
        if found.coordinators[0].error_code == 0:
            return
        time.sleep(0.05)
    raise TimeoutError("there is no coordinator")


def _require(answer: Any) -> Any:
    assert not isinstance(answer, Dropped), answer
    return answer
