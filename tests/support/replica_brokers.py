"""Brokers without sockets: replica managers and the Fetch and Produce handlers on simulated disks and virtual time.

Requests travel as encoded bytes, so the wire codecs are part of what is tested. A broker that stops takes its timers
and its answers with it; its disk stays and may have lost what was not synced.
"""

from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any

from simulated_disk import SimulatedDisk
from virtual_time import VirtualTime

from sskafka.client.broker_link import Link, LinkTo
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.model.acl import ANONYMOUS
from sskafka.model.ids import Uuid
from sskafka.model.settings import Settings
from sskafka.replication.cluster_links import ClusterLinks
from sskafka.replication.errors import UnknownTopicIdError, UnknownTopicOrPartitionError
from sskafka.replication.partition import Partition
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.runtime.timer_wheel import TimerWheel
from sskafka.servers.kafka.authorization import AllowAll
from sskafka.servers.kafka.handlers.fetch.handler import RACK_AWARE_SELECTOR, FetchHandler
from sskafka.servers.kafka.handlers.fetch.sessions import FetchSessions
from sskafka.servers.kafka.handlers.produce import ProduceHandler
from sskafka.servers.kafka.request import Request, Response
from sskafka.storage.log_manager import LogManager
from sskafka.storage.meta_properties import MetaProperties
from sskafka.wire.codec import decode, encode
from sskafka.wire.header import decode_response_header
from sskafka.wire.messages.fetch import FetchRequest, FetchResponse
from sskafka.wire.messages.produce import ProduceRequest, ProduceResponse

FETCH, PRODUCE = 1, 0
FETCH_VERSION, PRODUCE_VERSION = 17, 13
DATA = "/data"
HOUSEKEEPING_S = 1.0

SETTINGS = {
    "replica.lag.time.max.ms": "1000",
    "replica.fetch.wait.max.ms": "200",
    "replica.fetch.backoff.ms": "100",
    "min.insync.replicas": "2",
}


class Slot:
    """Where a parked request's answer goes."""

    def __init__(self, complete: Callable[[Response], None]) -> None:
        self.complete = complete
        self.on_abandoned: Callable[[], None] | None = None


class LabConnection:
    """Stands for a connection of the broker: parks what its handlers park."""

    authorizer = AllowAll()
    principal = ANONYMOUS
    host = "127.0.0.1"
    listener_name = "PLAINTEXT"

    def __init__(self, answered: Callable[[Response], None]) -> None:
        self._answered = answered
        self.slot: Slot | None = None

    def reserve(self, request: Request) -> Any:
        self.slot = Slot(self._answered)
        return self.slot


class Threads:
    """Work of a broker's threads takes a few milliseconds, during which its loop goes on."""

    def __init__(self, call_later: Callable[[float, Callable[[], None]], None], random: Random) -> None:
        self._call_later = call_later
        self._random = random

    def soon(self, work: Callable[[], None]) -> None:
        self._call_later(0, work)

    def in_thread(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        def run() -> None:
            error: BaseException | None = None
            try:
                work()
            except OSError as caught:
                error = caught
            done(error)

        self._call_later(self._random.uniform(0, 0.005), run)

    def side_by_side(self, syncs: Iterable[Callable[[], None]]) -> None:
        """One after the other: the simulated disk and its faults are for one thread."""
        for sync in syncs:
            sync()


class ReplicaBroker:
    def __init__(
        self,
        broker_id: int,
        time: VirtualTime,
        disk: SimulatedDisk,
        link_to: LinkTo[Link],
        controller: Link,
        broker_epoch: int,
        random: Random,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.is_running = True
        self.on_applied: Callable[[MetadataDelta, ClusterImage], None] | None = None
        """Told of metadata once the replicas are as it says; coordinators hear of their partitions so."""
        self.disk = disk
        self._time = time
        overrides = {"node.id": str(broker_id), "log.dirs": DATA, **SETTINGS, **(settings or {})}
        resolved = Settings.resolve(file={}, environment={}, overrides=overrides)
        disk.make_directory(DATA)
        self.logs = LogManager.open(
            disk,
            [DATA],
            node_id=broker_id,
            format_as=lambda: MetaProperties("cluster", broker_id, bytes(16)),
            background=Threads(self.call_later, Random(broker_id << 32 | broker_epoch)),
        )
        links = ClusterLinks(link_to, controller, self.call_later, lambda: self.broker_epoch)
        self.replicas = ReplicaManager(broker_id, self.logs, resolved, time, self.call_soon, links)
        timers = TimerWheel(time, self.call_later)
        sessions = FetchSessions(100, random.randint)
        self._handlers = {
            FETCH: FetchHandler(
                self.replicas, sessions, time, timers, 1 << 20, replica_selector=RACK_AWARE_SELECTOR
            ).handle,
            PRODUCE: ProduceHandler(self.replicas, time, timers).handle,
        }
        self.call_later(HOUSEKEEPING_S, self._keep_house)

    def stop(self) -> None:
        """As by kill -9: nothing of it runs any more."""
        self.is_running = False
        self.logs.release()

    def _keep_house(self) -> None:
        for _ in self.logs.flush_due_logs(self._time.now_ms()):
            pass
        self.call_later(HOUSEKEEPING_S, self._keep_house)

    def call_later(self, delay_s: float, call: Callable[[], None]) -> None:
        self._time.call_later(delay_s, lambda: call() if self.is_running else None)

    def call_soon(self, call: Callable[[], None]) -> None:
        self.call_later(0, call)

    def apply(self, delta: MetadataDelta, image: ClusterImage) -> None:
        self.replicas.apply(delta, image)
        told = self.on_applied
        if told is not None:
            self.replicas.when_applied(lambda: told(delta, image))

    def partition(self, topic_id: Uuid, index: int = 0) -> Partition:
        return self.replicas.find(topic_id, index)

    def maybe_partition(self, topic_id: Uuid, index: int = 0) -> Partition | None:
        """Return the partition; None while this broker's metadata does not have it."""
        try:
            return self.replicas.find(topic_id, index)
        except (UnknownTopicIdError, UnknownTopicOrPartitionError):
            return None

    def checkpoint(self) -> None:
        self.logs.checkpoint_high_watermarks(self.replicas.high_watermarks())
        self.logs.checkpoint_log_start_offsets()

    # -- requests

    def fetch(self, request: FetchRequest, answered: Callable[[FetchResponse], None]) -> LabConnection:
        """The connection of the request, which may be parked there."""

        def decoded(response: Response) -> None:
            answered(decode(FetchResponse, FETCH_VERSION, *_body(FETCH, FETCH_VERSION, response)))

        return self._handle(FETCH, FETCH_VERSION, bytearray(encode(request, FETCH_VERSION)), decoded)

    def produce(self, request: ProduceRequest, answered: Callable[[ProduceResponse], None]) -> LabConnection:
        def decoded(response: Response) -> None:
            answered(decode(ProduceResponse, PRODUCE_VERSION, *_body(PRODUCE, PRODUCE_VERSION, response)))

        return self._handle(PRODUCE, PRODUCE_VERSION, bytearray(encode(request, PRODUCE_VERSION)), decoded)

    def _handle(self, api: int, version: int, body: bytearray, answered: Callable[[Response], None]) -> LabConnection:
        connection = LabConnection(lambda response: answered(response) if self.is_running else None)
        request = Request(connection, version, 7, "replica", memoryview(body), 0, 0, api)  # type: ignore[arg-type]
        response = self._handlers[api](request)
        if response is not None:
            answered(response)
        return connection


def _body(api: int, version: int, response: Response) -> tuple[bytes, int]:
    parts = [response] if isinstance(response, bytes) else response
    frame = b"".join(part if isinstance(part, bytes) else bytes(part.read()) for part in parts)[4:]
    _, start = decode_response_header(api, version, frame)
    return frame, start
