"""A client's view of one cluster: its metadata, and one connection to each broker.

Metadata is refreshed when it is older than `metadata.max.age.ms` and whenever a response shows that it is stale.
`retrying` is the only retry loop of the client: it backs off, discards stale metadata and retries until its deadline.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Self, TypeAlias, TypeVar

from sskafka.client.backoff import Backoff, Randomness
from sskafka.client.config import ConnectionConfig
from sskafka.client.connection import Address, BrokerConnection, ConnectionOptions, connect
from sskafka.client.errors import (
    BrokerUnavailableError,
    ConfigError,
    ConnectionLostError,
    ConnectionRefusedByBrokerError,
    NobodyListensError,
    RequestTimeoutError,
    UnknownPartitionError,
    UnknownTopicError,
    broker_error,
    is_retriable,
)
from sskafka.client.metadata import BrokerView, MetadataSnapshot, PartitionView, TopicView, merged, view_of
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition, topic_name_problem
from sskafka.model.listeners import PLAINTEXT
from sskafka.runtime.clock import Clock, SystemClock
from sskafka.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

if TYPE_CHECKING:
    from sskafka.client.security import ClientSecurity

T = TypeVar("T")
Connector: TypeAlias = Callable[[Address, ConnectionOptions], Awaitable[BrokerConnection]]

DEFAULT_PORT = 9092
FAILOVER_ATTEMPTS = 8
FAILOVER_PAUSE_MS = 200
"""A failed leader or coordinator is usually replaced within about a second. The first attempts to find its successor
therefore follow each other quickly; later attempts back off as after any other failure."""
_FAILOVER_ERRORS = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_CONTROLLER,
    }
)
MARKERS_PAUSE_MS = 4
MARKERS_ATTEMPTS = 5
"""The markers of the previous transaction are written within milliseconds: CONCURRENT_TRANSACTIONS is retried after 4
ms, then 8, up to 64. After that something is slow, and the usual pauses follow."""
UNKNOWN_TOPIC_GRACE_MS = 500
"""A broker replays the metadata log some milliseconds behind the controller: for this long, a topic or partition that
the broker does not know may have been created just now."""
FIRST_CONTACT_MS = 800
"""For this long, a client that has never reached the cluster tries addresses that refuse connections."""
FAILED_BROKER_AVOIDED_MS = 5_000
"""For this long after a failure, a broker is avoided where another broker can serve the request."""


class Cluster:
    """Use as `async with Cluster("localhost:9092") as cluster`."""

    def __init__(
        self,
        bootstrap: str | Sequence[Address],
        config: ConnectionConfig | None = None,
        *,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
        connector: Connector = connect,
        security: "ClientSecurity | None" = None,
    ) -> None:
        """`security` is that of the connections, instead of what `config` has."""
        self.config = config or ConnectionConfig()
        self.clock = clock or SystemClock()
        self._bootstrap = parse_bootstrap(bootstrap) if isinstance(bootstrap, str) else tuple(bootstrap)
        self._connector = connector
        self.backoff = Backoff(
            self.config.retry_backoff_ms, self.config.retry_backoff_max_ms, randomness or random.Random()
        )
        self._options = ConnectionOptions(
            self.config.client_id,
            self.config.socket_connection_setup_timeout_ms,
            self.config.request_timeout_ms,
            security=security or _security(self.config),
        )
        self._view = MetadataSnapshot()
        self._fetched_at: dict[str, float] = {}
        self._connections: dict[Address, BrokerConnection] = {}
        self._connecting: dict[Address, asyncio.Lock] = {}
        self._failed_at: dict[Address, float] = {}
        self.coordinators: dict[tuple[int, str], int] = {}
        """Coordinators of groups and transactional ids, by type and key. `retrying` forgets all of them when an
        attempt fails: the failure may be that of a coordinator that moved."""
        self.unanswered = 0
        """Number of attempts whose request was sent and not answered. A broker may still carry such a request out."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        connections = list(self._connections.values())
        self._connections.clear()
        for connection in connections:
            await connection.close()

    # Metadata

    @property
    def view(self) -> MetadataSnapshot:
        """The metadata as of the last refresh; may be stale."""
        return self._view

    async def refresh(self, topics: Iterable[str] | None = (), *, create: bool = False) -> MetadataSnapshot:
        """Fetch metadata of `topics` (None: all topics) from any broker; `create` lets the broker auto-create them."""
        names = None if topics is None else set(topics)
        request = MetadataRequest(
            topics=None if names is None else [MetadataRequestTopic(name=name) for name in sorted(names)],
            allow_auto_topic_creation=create,
        )
        connection = await self.any_connection()
        response = await connection.request(request, MetadataResponse)
        self._view = merged(self._view, view_of(response), names)
        now = self.clock.monotonic_ms()
        self._fetched_at.update(dict.fromkeys(self._view.topics if names is None else names, now))
        return self._view

    async def topic(self, name: str, *, create: bool = False) -> TopicView:
        """Return the topic, refreshing expired metadata; raise KafkaError if the topic is missing or unusable."""
        known = self._view.topics.get(name)
        if known is not None and known.error_code == ErrorCode.NONE and not self._is_old(name):
            return known
        view = await self.refresh([name], create=create)
        found = view.topics.get(name)
        if found is None and create:  # The broker may be creating the topic right now.
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name!r} does not exist yet")
        if found is None:
            raise UnknownTopicError(f"there is no topic {name!r}", name)
        if found.error_code != ErrorCode.NONE:
            if found.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                raise broker_error(found.error_code, f"this user may not describe topic {name!r}")
            raise broker_error(found.error_code, topic_name_problem(name) or f"topic {name!r} cannot be used now")
        return found

    def adopt(self, view: MetadataSnapshot) -> None:
        """Use metadata that was fetched elsewhere, as if it had been fetched now."""
        self._view = view
        self._fetched_at = dict.fromkeys(view.topics, self.clock.monotonic_ms())

    async def partition(self, topic_partition: TopicPartition) -> PartitionView:
        """Return the cached partition, with or without a leader."""
        topic = await self.topic(topic_partition.topic)
        partition = topic.partitions.get(topic_partition.partition)
        if partition is None:  # it may have been added since the topic was looked up
            self.forget(topic.name)
            topic = await self.topic(topic_partition.topic)
            partition = topic.partitions.get(topic_partition.partition)
        if partition is None:
            raise UnknownPartitionError(topic.name, topic_partition.partition, len(topic.partitions))
        return partition

    async def leader_of(self, topic_partition: TopicPartition) -> PartitionView:
        """Return the partition with an available leader; raise a retriable KafkaError while it has none."""
        partition = await self.partition(topic_partition)
        if partition.leader not in self._view.brokers:
            self.forget(topic_partition.topic)
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic_partition} has no leader now")
        return partition

    async def by_leader(self, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        """Group the partitions by the id of their leader."""
        groups: dict[int, list[TopicPartition]] = {}
        for topic_partition in partitions:
            groups.setdefault((await self.leader_of(topic_partition)).leader, []).append(topic_partition)
        return groups

    def forget(self, *topics: str) -> None:
        """Mark the metadata of `topics` as stale, so that the next use refreshes it."""
        for topic in topics:
            self._fetched_at.pop(topic, None)

    def _is_old(self, topic: str) -> bool:
        fetched_at = self._fetched_at.get(topic)
        return fetched_at is None or self.clock.monotonic_ms() - fetched_at > self.config.metadata_max_age_ms

    # Connections

    async def connection_to(self, node_id: int) -> BrokerConnection:
        broker = self._view.brokers.get(node_id)
        if broker is None:
            raise BrokerUnavailableError(f"the cluster has no broker {node_id} now")
        return await self._connection(broker.address)

    async def any_connection(self) -> BrokerConnection:
        """Return an open connection if there is one; otherwise connect to the first broker that accepts.

        Brokers and bootstrap addresses are tried in the order of their last failure, most recent last, because a broker
        that accepts connections may still answer nothing."""
        for connection in self._connections.values():
            if connection.is_open:
                return connection
        known = [broker.address for broker in self._view.brokers.values()]
        addresses = dict.fromkeys((*known, *self._bootstrap))
        failures: list[BrokerUnavailableError] = []
        for address in sorted(addresses, key=lambda address: self._failed_at.get(address, 0)):
            try:
                return await self._connection(address)
            except BrokerUnavailableError as error:
                failures.append(error)
        reasons = "; ".join(map(str, failures))
        is_refused = all(isinstance(failure, ConnectionRefusedByBrokerError) for failure in failures)
        if failures and not known and is_refused:
            raise NobodyListensError(reasons)
        raise BrokerUnavailableError(reasons or "no broker is known: there are neither bootstrap servers nor metadata")

    def has_failed_recently(self, node_id: int) -> bool:
        """Return whether a connection to the broker failed in the last `FAILED_BROKER_AVOIDED_MS`."""
        broker = self._view.brokers.get(node_id)
        failed_at = self._failed_at.get(broker.address) if broker is not None else None
        return failed_at is not None and self.clock.monotonic_ms() - failed_at < FAILED_BROKER_AVOIDED_MS

    async def controller_connection(self) -> BrokerConnection:
        """Return a connection to the broker that the metadata names as controller, for changes to the cluster."""
        if self._view.controller_id not in self._view.brokers:
            await self.refresh()
        if self._view.controller_id not in self._view.brokers:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "the cluster has no controller now")
        return await self.connection_to(self._view.controller_id)

    async def _connection(self, address: Address) -> BrokerConnection:
        async with self._connecting.setdefault(address, asyncio.Lock()):
            connection = self._connections.get(address)
            if connection is None or not connection.is_open:
                connection = await self._connect(address)
                self._connections[address] = connection
            return connection

    async def _connect(self, address: Address) -> BrokerConnection:
        try:
            connection = await self._connector(address, self._options)
        except BrokerUnavailableError:
            self._failed_at[address] = self.clock.monotonic_ms()
            raise
        connection.on_lost = self._lost
        return connection

    def _lost(self, connection: BrokerConnection) -> None:
        self._failed_at[connection.address] = self.clock.monotonic_ms()

    async def brokers(self) -> Sequence[BrokerView]:
        return tuple((await self.refresh()).brokers.values())

    # Retries

    def deadline_ms(self, timeout_ms: int | None = None) -> float:
        return self.clock.monotonic_ms() + (self.config.default_api_timeout_ms if timeout_ms is None else timeout_ms)

    def retry_delay_ms(self, failures: int, error: Exception | None = None) -> float:
        """Return the pause after failure number `failures` (counted from 0), which was `error`."""
        delay_ms = self.backoff.delay_ms(failures)
        if isinstance(error, KafkaError) and error.code == ErrorCode.CONCURRENT_TRANSACTIONS:
            return min(delay_ms, MARKERS_PAUSE_MS << failures) if failures < MARKERS_ATTEMPTS else delay_ms
        is_failover = (
            error.code in _FAILOVER_ERRORS
            if isinstance(error, KafkaError)
            else isinstance(error, ConnectionRefusedByBrokerError | ConnectionLostError)
        )
        if not is_failover or failures >= FAILOVER_ATTEMPTS:
            return delay_ms
        return min(delay_ms, max(FAILOVER_PAUSE_MS, self.config.retry_backoff_ms))

    async def pause(self, attempt: int, deadline_ms: float, error: Exception | None = None) -> None:
        """Sleep after attempt number `attempt`, which failed with `error`, but not beyond the deadline."""
        left_ms = deadline_ms - self.clock.monotonic_ms()
        await asyncio.sleep(max(0.0, min(self.retry_delay_ms(attempt, error), left_ms)) / 1000)

    async def retrying(
        self, attempt: Callable[[], Awaitable[T]], *, topics: Iterable[str] = (), deadline_ms: float | None = None
    ) -> T:
        """Run `attempt` until it succeeds, fails with an error that is not retriable, or the deadline has passed.

        The metadata of `topics` is refreshed before each further attempt. An unknown topic is a final error only after
        `UNKNOWN_TOPIC_GRACE_MS`: it may have been created a moment ago. Refused connections are final after
        `FIRST_CONTACT_MS` if this client has never reached the cluster: the address is probably wrong.
        """
        deadline_ms = self.deadline_ms() if deadline_ms is None else deadline_ms
        grace_until_ms = self.clock.monotonic_ms() + UNKNOWN_TOPIC_GRACE_MS
        first_contact_until_ms = self.clock.monotonic_ms() + FIRST_CONTACT_MS
        failures = 0
        while True:
            try:
                return await attempt()
            except Exception as error:
                self.unanswered += isinstance(error, ConnectionLostError | RequestTimeoutError)
                now_ms = self.clock.monotonic_ms()
                may_exist_soon = isinstance(error, UnknownTopicError) and now_ms < grace_until_ms
                is_alone = isinstance(error, NobodyListensError) and now_ms >= first_contact_until_ms
                if not (is_retriable(error) or may_exist_soon) or is_alone or now_ms >= deadline_ms:
                    raise
                failure = error
            self.forget(*topics)
            self.coordinators.clear()
            await self.pause(failures, deadline_ms, failure)
            failures += 1


def parse_bootstrap(text: str) -> tuple[Address, ...]:
    """Parse `host:port,host:port`. The default port is 9092; IPv6 addresses are in brackets."""
    addresses = tuple(_parse_address(part.strip()) for part in text.split(",") if part.strip())
    if not addresses:
        raise ConfigError("no bootstrap server is set")
    return addresses


def _parse_address(text: str) -> Address:
    text = text.rpartition("://")[2]
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(DEFAULT_PORT)
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdigit() or not 0 < int(port) <= 65535:
        raise ConfigError(f"bootstrap server {text!r} is not host:port")
    return Address(host, int(port))


def _security(config: ConnectionConfig) -> "ClientSecurity | None":
    if config.security_protocol == PLAINTEXT:
        return None
    from sskafka.client.security import client_security  # noqa: PLC0415  not for PLAINTEXT

    return client_security(config)
