"""Construct a node's part in the metadata quorum: log, Raft, committed metadata, and the controller when it leads.

    other nodes ---- Raft requests ----> QuorumDriver ---> CommittedMetadata ---> listeners (every node)
    this node   ---- ask(request) -----> ControllerLink -> ActiveController (the leader's node)

Everything here runs on one event loop, the control loop. See control_thread for how the data loop reaches it.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from random import Random
from typing import Any, Protocol, TypeAlias

from sskafka.client.broker_link import BrokerLink, ConnectionOptions
from sskafka.client.connection import NOT_REPORTED
from sskafka.client.node_security import link_security
from sskafka.controller.active_controller import ActiveController, FirstRecords
from sskafka.controller.broker_watch import BrokerProber, BrokerWatch, SocketProber
from sskafka.controller.decisions import Decisions, NewClientDecisions
from sskafka.controller.link import ControllerLink
from sskafka.controller.periodic_tasks import PeriodicTasks
from sskafka.metadata.brokers.presence import BrokerPresence
from sskafka.metadata.brokers.sessions import BrokerSessions
from sskafka.metadata.controller_result import ControllerResult, RandomBytes
from sskafka.metadata.effective_settings import effective_settings
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import AbortTransactionRecord, MetadataRecord
from sskafka.model.acl import Caller
from sskafka.model.counters import Traffic
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import ZERO_UUID, Uuid
from sskafka.model.listeners import Endpoint
from sskafka.model.settings import Settings
from sskafka.quorum.committed_metadata import CommittedMetadata
from sskafka.quorum.control_batches import control_batch
from sskafka.quorum.describe_quorum import QuorumDescriber
from sskafka.quorum.driver import QuorumDriver, QuorumNetwork
from sskafka.quorum.elections import QuorumElection, last_elections
from sskafka.quorum.formatting import bootstrap_records
from sskafka.quorum.metadata_log import MetadataLog
from sskafka.quorum.peer_network import PeerNetwork, voter_addresses, voter_directories, voter_set
from sskafka.quorum.raft_counters import RaftCounters
from sskafka.quorum.raft_messages import WireRequest, request_from_wire, response_to_wire
from sskafka.quorum.snapshot_writer import SnapshotWriter
from sskafka.raft.election_state import ElectionState
from sskafka.raft.log_view import SnapshotId
from sskafka.raft.messages import Request, Response
from sskafka.raft.node import RaftNode
from sskafka.raft.ready import LeaderAndEpoch
from sskafka.raft.roles import Leader
from sskafka.raft.timing import Timing
from sskafka.raft.voters import NO_NODE
from sskafka.runtime.background import LoopBackground
from sskafka.runtime.clock import Clock
from sskafka.storage.disk import Disk
from sskafka.storage.meta_properties import read_meta_properties
from sskafka.wire.messages.describe_quorum import DescribeQuorumRequest
from sskafka.wire.messages.fetch import FetchRequest
from sskafka.wire.schema import Message

_log = logging.getLogger(__name__)

SHUTDOWN_POLL_S = 0.01


def quorum_timing(settings: Settings) -> Timing:
    return Timing(
        election_timeout_ms=settings["controller.quorum.election.timeout.ms"],
        fetch_timeout_ms=settings["controller.quorum.fetch.timeout.ms"],
        election_backoff_max_ms=settings["controller.quorum.election.backoff.max.ms"],
        request_timeout_ms=settings["controller.quorum.request.timeout.ms"],
        retry_backoff_ms=settings["controller.quorum.retry.backoff.ms"],
        fetch_max_bytes=settings["controller.quorum.fetch.max.bytes"],
        fetch_snapshot_max_bytes=settings["controller.quorum.fetch.snapshot.max.bytes"],
        first_election_delay_ms=settings["controller.quorum.first.election.delay.ms"],
    )


def quorum_connection_options(
    settings: Settings, endpoint: Endpoint, current: Callable[[], Settings], traffic: Traffic = NOT_REPORTED
) -> ConnectionOptions:
    """Return the options of connections to listeners like `endpoint`; the connect timeout is at most the timeout of a
    request.

    `current` returns the settings in effect when a connection is opened."""
    timeout_ms = settings["controller.quorum.request.timeout.ms"]
    setup_ms = min(timeout_ms, settings["socket.connection.setup.timeout.ms"])
    setup_max_ms = min(timeout_ms, settings["socket.connection.setup.timeout.max.ms"])
    security = link_security(settings, endpoint, current)
    name = f"node-{settings['node.id']}"
    return ConnectionOptions(name, setup_ms, timeout_ms, setup_max_ms, security=security, traffic=traffic)


class QuorumObserver(Protocol):
    """Observes what this node's part of the quorum stores. An observer must not raise anything but OSError."""

    def restored(self, election: ElectionState) -> ElectionState:
        """Return the election state that was read at the start, completed by the last leader if that is known."""
        ...

    def election_changed(self, election: ElectionState) -> None:
        """Called when quorum-state is written, before any message that depends on it is sent."""
        ...

    def committed_up_to(self, high_watermark: int) -> None: ...

    def snapshot_installed(self) -> None: ...


Observe: TypeAlias = Callable[[MetadataLog, Settings], QuorumObserver | None]


class ControlPlane:
    def __init__(
        self,
        settings: Settings,
        cluster_id: str,
        disk: Disk,
        clock: Clock,
        executor: Executor,
        random_bytes: RandomBytes,
        random: Random,
        on_failure: Callable[[BaseException], None],
        client_decisions: NewClientDecisions,
        network: QuorumNetwork | None = None,
        prober: BrokerProber | None = None,
        observe: Observe | None = None,
    ) -> None:
        """Runs on the running event loop. Raises MetadataError if the metadata on the disk cannot be used.

        `network` replaces connections to the voters' addresses, and `prober` replaces connections to brokers.
        `observe` may return an observer of the opened metadata log."""
        self._settings = settings
        self._cluster_id = cluster_id
        self._clock = clock
        self._on_failure = on_failure
        self._loop = asyncio.get_running_loop()
        self.node_id = settings["node.id"]
        self._log = MetadataLog.open(disk, settings.metadata_directory, settings, clock.now_ms())
        self._observer = observe(self._log, settings) if observe is not None else None
        if self._observer is not None:
            self._log.on_election_written = self._observer.election_changed
        self.committed = CommittedMetadata(self._log)
        self.voters = voter_set(settings, self._log.setup)
        self.addresses = voter_addresses(settings, self._log.setup)
        self._options = quorum_connection_options(settings, settings.quorum_endpoint, self._effective_settings)
        self.traffic = Traffic()
        """Counters of the requests that this node sends as a member of the quorum."""
        self.directory_id = _metadata_directory_id(disk, settings)
        self._peers = PeerNetwork(cluster_id, self._link_to_peer, self._note_other_cluster, self.directory_id)
        self._network = network or self._peers
        self._driver = self._new_driver(executor, random)
        presence = BrokerPresence(settings["broker.heartbeat.interval.ms"])
        sessions = BrokerSessions(settings["broker.session.timeout.ms"], presence)
        is_alone = self.voters.is_only(self.node_id)
        self._decisions = Decisions(
            settings, cluster_id, clock, random_bytes, sessions, client_decisions, is_alone=is_alone
        )
        self.controller = self._new_controller()
        self._periodic = PeriodicTasks(self.controller, self.committed, self._decisions, sessions, settings, clock)
        prober = prober or self._new_prober()
        self._watch = BrokerWatch(self.node_id, prober, presence, clock, self._periodic.broker_was_probed)
        self._snapshots = SnapshotWriter(self._log, self.committed, settings, clock, on_failure)
        listeners = (*settings.controller_listeners, *settings.listeners)
        self._describer = QuorumDescriber(self._driver.node, clock, self.addresses, listeners[0].name)
        self._leadership = LeaderAndEpoch(NO_NODE, 0)
        self._leader_changed = asyncio.Event()
        self._links: list[ControllerLink] = []
        self.on_leader_change: Callable[[], None] | None = None
        """Called when another node leads the quorum, and when this node becomes the active controller."""
        self._other_cluster: set[int] = set()
        self._has_joined = False

    def _new_prober(self) -> BrokerProber:
        settings = self._settings
        listener_name = settings["inter.broker.listener.name"] or (
            settings.inter_broker_listener if settings.listeners else None
        )
        brokers = quorum_connection_options(settings, _broker_endpoint(settings), self._effective_settings)
        return SocketProber(self._cluster_id, listener_name, self.addresses, self._options, brokers)

    def _new_driver(self, executor: Executor, random: Random) -> QuorumDriver:
        node = RaftNode(
            self.node_id,
            self.voters,
            self._log,
            self._read_election(),
            int(self._clock.monotonic_ms()),
            random.randrange,
            quorum_timing(self._settings),
            self._log.missing_end_offset,
        )
        background = LoopBackground(self._loop, executor)
        return QuorumDriver(
            node, self._log, self._network, self._clock, self._loop.call_later, background, self, self._on_failure
        )

    def _new_controller(self) -> ActiveController:
        linger_ms = self._settings["controller.quorum.append.linger.ms"]
        controller = ActiveController(
            self._driver, self.committed, self._clock, self._loop, self._first_records, linger_ms=linger_ms
        )
        controller.on_activation = self._activated
        return controller

    def _read_election(self) -> ElectionState:
        election = self._log.read_election()
        return election if self._observer is None else self._observer.restored(election)

    def start(self) -> None:
        self._log.on_election_written(self._driver.node.election)
        self._driver.start()
        self._snapshots.start()
        if self.node_id in self.voters:
            self.committed.subscribe(self._watch.metadata_changed)

    async def stop(self) -> None:
        """Transfer leadership if another voter can take it, and close the log cleanly."""
        self._periodic.end()
        self._watch.stop()
        await self._snapshots.stop()
        self._driver.shutdown()
        await self._resignation_announced()
        self._driver.stop()
        self.controller.follow("this node is shutting down")
        for link in self._links:
            link.close()
        self._peers.close()
        self._log.close()

    async def _resignation_announced(self) -> None:
        """Return when the voters know that this node no longer leads, or after a timeout."""
        deadline_ms = self._clock.monotonic_ms() + self._settings["controller.quorum.request.timeout.ms"]
        while not self._driver.is_shut_down and self._clock.monotonic_ms() < deadline_ms:  # noqa: ASYNC110
            await asyncio.sleep(SHUTDOWN_POLL_S)

    # ---- requests of this node to the controller

    def new_link(self) -> ControllerLink:
        socket_timeout_ms = self._settings["controller.socket.timeout.ms"]
        link = ControllerLink(self.node_id, self, self.decide, self._link_to, self._clock, socket_timeout_ms)
        self._links.append(link)
        return link

    def _link_to(self, voter: int) -> BrokerLink:
        return BrokerLink(lambda: self.addresses.get(voter), self._options)

    def _link_to_peer(self, voter: int) -> BrokerLink:
        settings = self._settings
        options = quorum_connection_options(settings, settings.quorum_endpoint, self._effective_settings, self.traffic)
        return BrokerLink(lambda: self.addresses.get(voter), options)

    def _effective_settings(self) -> Settings:
        return effective_settings(self._settings, self.committed.image)

    async def decide(self, request: Message, caller: Caller | None = None) -> Any:
        """Return the answer of this node's own controller; NotControllerError unless it is the active one."""
        if isinstance(request, DescribeQuorumRequest):
            return await self.controller.submit(lambda _: ControllerResult((), self._describer.describe(request)))
        return await self.controller.submit(self._decisions.for_request(request, caller))

    @property
    def leader_id(self) -> int:
        return self._leadership.leader_id

    @property
    def raft(self) -> RaftNode:
        return self._driver.node

    @property
    def log_end_offset(self) -> int:
        return self._log.end_offset

    @property
    def raft_counters(self) -> RaftCounters:
        return self._driver.counters

    @property
    def leader_epoch(self) -> int:
        return self._leadership.epoch

    def last_elections(self, count: int) -> list[QuorumElection]:
        return last_elections(self._log, count)

    async def leader_changed(self, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._leader_changed.wait()
        except TimeoutError:
            pass

    # ---- requests of other nodes to the quorum

    async def answer(self, request: WireRequest) -> Message:
        """Return the response. Raises KafkaError for errors that the response has no field for at its partition."""
        requested = request_from_wire(request, self._cluster_id, self.node_id, voter_directories(self._log.setup))
        if isinstance(request, FetchRequest):
            self._describer.note_directory(request)
        return response_to_wire(await self.ask_raft(requested))

    async def ask_raft(self, request: Request) -> Response:
        answered: asyncio.Future[Response] = self._loop.create_future()

        def reply(response: Response) -> None:
            if not answered.done():
                answered.set_result(response)

        self._driver.ask(request, reply)
        return await answered

    # ---- events of the quorum (QuorumListener)

    def snapshot_installed(self, snapshot_id: SnapshotId) -> None:
        self.committed.load_snapshot()
        if self._observer is not None:
            self._observer.snapshot_installed()

    def committed_up_to(self, high_watermark: int) -> None:
        self._has_joined = True
        if self._observer is not None:
            self._observer.committed_up_to(high_watermark)
        self.controller.committed(high_watermark)
        role = self._driver.node.role
        if isinstance(role, Leader) and high_watermark > role.epoch_start_offset and not self.controller.is_active:
            self._loop.call_soon(self._maybe_lead, self._driver.node.epoch)

    def leadership_changed(self, leadership: LeaderAndEpoch) -> None:
        leader = "nobody" if leadership.leader_id == NO_NODE else f"node {leadership.leader_id}"
        _log.info("quorum: %s leads epoch %d", leader, leadership.epoch)
        self._leadership = leadership
        if leadership.leader_id != self.node_id:
            self._periodic.end()
            self.controller.follow()
        self._notify_leader_waiters()

    def _notify_leader_waiters(self) -> None:
        self._leader_changed.set()
        self._leader_changed.clear()
        if self.on_leader_change is not None:
            self.on_leader_change()

    def _maybe_lead(self, epoch: int) -> None:
        node = self._driver.node
        is_leader = isinstance(node.role, Leader) and node.epoch == epoch
        if is_leader and not self.controller.is_active and not self.controller.lead(epoch):
            self._driver.resign()

    # ---- the controller's own work

    def _first_records(self, image: ClusterImage) -> FirstRecords:
        setup = self._log.setup
        control, count = None, 0
        if setup.voters is not None and not setup.is_in_log:
            control, count = control_batch(setup.records(), now_ms=self._clock.now_ms()), len(setup.records())
            setup.is_in_log = True
        records: list[MetadataRecord] = []
        if self.committed.in_transaction:
            records.append(AbortTransactionRecord("the controller stopped in the middle of it"))
        if not image.features:
            records += bootstrap_records(self._log.disk, self._log.home, self._settings)
        return FirstRecords(control, count, records)

    def _activated(self) -> None:
        self._periodic.begin()
        self._notify_leader_waiters()

    # ---- other clusters

    def _note_other_cluster(self, node_id: int) -> None:
        """End the node if so many voters belong to another cluster that this node can never join the quorum."""
        _log.error("node %d does not belong to this node's cluster %s", node_id, self._cluster_id)
        self._other_cluster.add(node_id)
        if not self._has_joined and len(self._other_cluster) > len(self.voters) - self.voters.majority:
            others = ", ".join(str(node) for node in sorted(self._other_cluster))
            text = f"this node belongs to cluster {self._cluster_id}, but nodes {others} belong to another cluster"
            self._on_failure(KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID, text))


def _metadata_directory_id(disk: Disk, settings: Settings) -> Uuid:
    meta = read_meta_properties(disk, settings.metadata_directory)
    return ZERO_UUID if meta is None or meta.directory_id is None else meta.directory_id


def _broker_endpoint(settings: Settings) -> Endpoint:
    """Return the kind of listener at which brokers are probed. A controller alone knows no login of brokers."""
    return settings.inter_broker_endpoint if settings.listeners else Endpoint("PLAINTEXT", "", 0)
