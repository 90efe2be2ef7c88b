"""This node in the cluster, as broker/ uses it: the control plane on its thread, and the registration of the broker.

open    read the metadata on the disk                   -> metadata reaches the data loop
begin   take part in the quorum
join    register the broker and wait until unfenced     -> clients are served
leave   move leadership of partitions to other brokers  -> clients leave
close   leave the quorum and close the metadata log
"""

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from random import Random

from sskafka.controller.broker_lifecycle import NOT_REGISTERED, BrokerLifecycle
from sskafka.controller.control_client import ControlClient, DirectControl
from sskafka.controller.control_plane import ControlPlane, Observe
from sskafka.controller.control_samples import ControlSamples
from sskafka.controller.decisions import NewClientDecisions
from sskafka.metadata.image import ClusterImage
from sskafka.model.counters import Sample
from sskafka.model.ids import Uuid
from sskafka.model.settings import Settings
from sskafka.quorum.elections import QuorumElection
from sskafka.quorum.metadata_feed import MetadataFeed
from sskafka.raft.messages import LocalRequest, Response
from sskafka.raft.voters import NO_NODE
from sskafka.runtime.clock import Clock
from sskafka.runtime.control_thread import ControlThread, LoopLiveness
from sskafka.storage.disk import Disk
from sskafka.wire.messages.broker_registration import BrokerRegistrationRequest

LEADER_WAIT_S = 60.0  # callers that wait for another leader check again after this time


class NodeControl:
    def __init__(
        self,
        settings: Settings,
        cluster_id: str,
        disk: Disk,
        clock: Clock,
        executor: Executor,
        new_loop: Callable[[], asyncio.AbstractEventLoop],
        on_failure: Callable[[BaseException], None],
        client_decisions: NewClientDecisions,
        observe: Observe | None = None,
    ) -> None:
        """Runs on the data loop. `on_failure` is called on the data loop, `observe` on the control loop."""
        self._observe = observe
        self._client_decisions = client_decisions
        self._settings = settings
        self._cluster_id = cluster_id
        self._disk = disk
        self._clock = clock
        self._executor = executor
        self._data_loop = asyncio.get_running_loop()
        self._on_failure = on_failure
        self.thread = ControlThread(new_loop)
        self.feed = MetadataFeed(self._data_loop, on_failure)
        self._plane: ControlPlane | None = None
        self._lifecycle: BrokerLifecycle | None = None
        self._direct: DirectControl | None = None
        self._samples: ControlSamples | None = None

    # ---- at any time, on any thread

    @property
    def image(self) -> ClusterImage:
        return self.feed.image

    @property
    def leader_id(self) -> int:
        return self._plane.leader_id if self._plane is not None else NO_NODE

    @property
    def broker_epoch(self) -> int:
        return self._lifecycle.broker_epoch if self._lifecycle is not None else NOT_REGISTERED

    @property
    def direct(self) -> DirectControl:
        """For handlers on the control loop."""
        assert self._direct is not None, "the control plane has not been opened"
        return self._direct

    @property
    def client(self) -> ControlClient:
        """For handlers on the data loop."""
        return ControlClient(self.thread, self.direct, self.feed)

    @property
    def is_alone(self) -> bool:
        """Whether this node is the only voter, and needs no other node to start."""
        assert self._plane is not None
        return self._plane.voters.is_only(self._plane.node_id)

    def samples(self) -> Iterator[Sample]:
        """Yield the metrics of the control plane. Called on the data loop."""
        return iter(self._samples or ())

    async def turn(self) -> None:
        """Wait until the control loop has completed one iteration."""
        await self.thread.call(asyncio.sleep(0))

    async def leader_other_than(self, known: int) -> int:
        """Return the leader of the quorum, as far as this node knows, once it is another one than `known`."""
        return await self.thread.call(self._leader_other_than(known))

    async def _leader_other_than(self, known: int) -> int:
        assert self._plane is not None
        while self._plane.leader_id == known:
            await self._plane.leader_changed(LEADER_WAIT_S)
        return self._plane.leader_id

    async def last_elections(self, count: int) -> list[QuorumElection]:
        """Return the last elections of the quorum, newest first, as this node's metadata log has them."""
        return await self.thread.call(self._last_elections(count))

    async def _last_elections(self, count: int) -> list[QuorumElection]:
        assert self._plane is not None
        return self._plane.last_elections(count)

    async def ask_raft(self, request: LocalRequest) -> Response:
        """Return the answer of this node's Raft state machine, once what it says is on disk."""
        assert self._plane is not None
        return await self.thread.call(self._plane.ask_raft(request))

    # ---- in this order, on the data loop

    async def open(self) -> None:
        """Read the metadata on the disk. Raises MetadataError if it cannot be used."""
        self.thread.start()
        try:
            await self.thread.call(self._open())
        except BaseException:
            await self.thread.stop()
            raise

    async def _open(self) -> None:
        self._plane = plane = ControlPlane(
            self._settings,
            self._cluster_id,
            self._disk,
            self._clock,
            self._executor,
            os.urandom,
            Random(),
            self._fail,
            self._client_decisions,
            observe=self._observe,
        )
        self._direct = DirectControl(plane, plane.new_link())
        self._samples = ControlSamples(plane, lambda: self.image, self._clock)
        self.feed.subscribe(self._samples.metadata_changed)
        plane.committed.subscribe(self.feed.publish)

    def _fail(self, error: BaseException) -> None:
        self._data_loop.call_soon_threadsafe(self._on_failure, error)

    async def begin(self) -> None:
        await self.thread.call(self._begin())

    async def _begin(self) -> None:
        assert self._plane is not None
        self._plane.start()

    async def join(
        self,
        request: BrokerRegistrationRequest,
        offline_directories: Callable[[], Sequence[Uuid]],
        cordoned_directories: Callable[[], Sequence[Uuid]] = tuple,
    ) -> None:
        """Return when the broker is unfenced according to its own metadata. Raises KafkaError if it is rejected."""
        await self.thread.call(self._join(request, offline_directories, cordoned_directories))
        await self.feed.until(lambda image: image.is_active(request.broker_id))

    async def _join(
        self,
        request: BrokerRegistrationRequest,
        offline_directories: Callable[[], Sequence[Uuid]],
        cordoned_directories: Callable[[], Sequence[Uuid]],
    ) -> None:
        assert self._plane is not None
        liveness = LoopLiveness(self._data_loop, self._settings["broker.session.timeout.ms"] // 2)
        self._lifecycle = BrokerLifecycle(
            self._plane.new_link(),
            request,
            self._settings,
            self._clock,
            liveness,
            offline_directories,
            self._fail,
            cordoned_directories,
        )
        self._plane.on_leader_change = self._lifecycle.controller_changed
        await self._lifecycle.start()

    def applied(self, next_offset: int) -> None:
        """Note that the data loop has applied the metadata before `next_offset`."""
        if self._lifecycle is not None and not self.thread.loop.is_closed():  # metadata may arrive during a stop
            self.thread.loop.call_soon_threadsafe(self._lifecycle.applied, next_offset)

    async def leave(self) -> None:
        if self._lifecycle is not None:
            others = [broker for broker in self.image.active_brokers() if broker.id != self._settings["node.id"]]
            move_leadership = bool(others) and self._settings["controlled.shutdown.enable"]
            await self.thread.call(self._lifecycle.shut_down(move_leadership))

    async def close(self) -> None:
        assert self._plane is not None
        try:
            await self.thread.call(self._plane.stop())
        finally:
            await self.thread.stop()
