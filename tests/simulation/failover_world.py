"""Brokers of a simulated cluster: processes that register and send heartbeats, and the network between them and voters.

Processes run the real `BrokerLifecycle`. Simulated is how they reach the active controller, and what voters find when
they connect to a broker's address.
"""

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any

from quorums import CLUSTER_ID, Quorum
from virtual_loop import LoopClock

from sskafka.controller.broker_lifecycle import BrokerLifecycle
from sskafka.controller.broker_watch import ProbeOutcome
from sskafka.controller.control_plane import ControlPlane
from sskafka.metadata.brokers.lifecycle import supported_features
from sskafka.metadata.brokers.presence import ProbeResult
from sskafka.metadata.brokers.registration import BrokerRegistration
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import Uuid
from sskafka.model.settings import Settings
from sskafka.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from sskafka.wire.messages.broker_registration import BrokerRegistrationRequest, Listener
from sskafka.wire.schema import Message

PROBE_TIMEOUT_S = 2.0
RETRY_S = 0.05
SETTINGS = Settings.resolve({"node.id": "1", "log.dirs": "/data"})


def now_s() -> float:
    return asyncio.get_running_loop().time()


class Process:
    """One life of a broker."""

    def __init__(self, world: "World", broker_id: int, port: int, *, is_hidden: bool) -> None:
        self.world = world
        self.broker_id = broker_id
        self.port = port
        self.is_hidden = is_hidden
        """Voters find nobody at the address that it advertises."""
        self.incarnation_id: Uuid = world.random.randbytes(16)
        self.is_alive = True
        self.is_cut = False
        self.ended = asyncio.Event()
        self.goes_on = asyncio.Event()
        self.goes_on.set()
        self.held: dict[SimulatedConnection, None] = {}
        self.heard_s = now_s()
        """When a controller heard of it last."""
        self.failure: BaseException | None = None
        request = BrokerRegistrationRequest(
            broker_id,
            CLUSTER_ID,
            self.incarnation_id,
            listeners=[Listener("PLAINTEXT", "localhost", port, 0)],
            features=supported_features(),
            log_dirs=[bytes([broker_id] * 16)],
        )
        self.lifecycle = BrokerLifecycle(
            self,  # type: ignore[arg-type]  # it is its own link to the controller
            request,
            SETTINGS,
            LoopClock(),
            self,  # type: ignore[arg-type]  # and its own sign of life
            lambda: (),
            self._fail,
        )
        self._starting = asyncio.ensure_future(self._start())

    async def _start(self) -> None:
        try:
            await self.lifecycle.start()
        except KafkaError as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self.failure = error
        self.kill()

    @property
    def is_well(self) -> bool:
        return self.is_alive and not self.is_cut and self.goes_on.is_set()

    # -- what may happen to it

    def kill(self) -> None:
        """Its host tells those who are connected, unless the network is cut."""
        self.is_alive = False
        self.ended.set()
        self._starting.cancel()
        if self.lifecycle._task is not None:
            self.lifecycle._task.cancel()
        if not self.is_cut:
            self.break_connections()

    def pause(self) -> None:
        self.goes_on.clear()

    def resume(self) -> None:
        self.goes_on.set()

    def break_connections(self) -> None:
        for connection in list(self.held):
            connection.end()

    # -- sign of life

    async def is_turning(self) -> bool:
        await self.goes_on.wait()
        return True

    # -- its link to the controller

    async def ask(self, request: Message, timeout_ms: int) -> Any:
        deadline_s = now_s() + timeout_ms / 1000
        while now_s() < deadline_s:
            await asyncio.sleep(self.world.random.uniform(0.0005, 0.01))
            await self.goes_on.wait()
            controller = self.world.controller()
            if controller is not None and not self.is_cut:
                try:
                    async with asyncio.timeout(max(0.001, deadline_s - now_s())):
                        return await self._decide(controller, request)
                except (KafkaError, TimeoutError):
                    pass
            await asyncio.sleep(RETRY_S)
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no controller answered")

    async def _decide(self, controller: ControlPlane, request: Message) -> Any:
        if isinstance(request, BrokerHeartbeatRequest):
            request.current_metadata_offset = controller.committed.next_offset - 1
        answer = await controller.decide(request)
        if answer.error_code == ErrorCode.NONE:
            self.heard_s = now_s()
        await self.goes_on.wait()
        return answer


class SimulatedConnection:
    def __init__(self, process: Process) -> None:
        self._process = process
        self._ended = asyncio.Event()
        process.held[self] = None

    async def lost(self) -> None:
        await self._ended.wait()

    def drop(self) -> None:
        self._process.held.pop(self, None)

    def end(self) -> None:
        self._ended.set()
        self.drop()


class World:
    """The processes, by the order in which they were started."""

    def __init__(self, quorum: Quorum, random: Random) -> None:
        self.quorum = quorum
        self.random = random
        self.processes: list[Process] = []
        self.false_refusals = 0.0
        """The share of attempts to connect to a live broker that end in a refusal."""
        quorum.prober_of = lambda node_id: SimulatedProber(self, node_id)

    def start(self, broker_id: int, port: int | None = None, *, is_hidden: bool = False) -> Process:
        process = Process(self, broker_id, port or 9000 + broker_id, is_hidden=is_hidden)
        self.processes.append(process)
        return process

    def living(self, broker_id: int | None = None) -> list[Process]:
        return [item for item in self.processes if item.is_alive and broker_id in {None, item.broker_id}]

    def by_incarnation(self, incarnation_id: Uuid) -> Process | None:
        return next((item for item in self.processes if item.incarnation_id == incarnation_id), None)

    def at_port(self, port: int) -> Process | None:
        return next((item for item in self.living() if item.port == port), None)

    def controller(self) -> ControlPlane | None:
        planes = [
            plane
            for node_id, plane in self.quorum.planes.items()
            if plane.controller.is_active and node_id not in self.quorum.cut_off
        ]
        return max(planes, key=lambda plane: plane.leader_epoch, default=None)

    def brokers(self) -> Sequence[BrokerRegistration]:
        """As the voter sees them that knows most."""
        planes = self.quorum.planes.values()
        image = max((plane.committed.image for plane in planes), key=lambda image: image.next_offset, default=None)
        return [] if image is None else list(image.brokers.values())


class SimulatedProber:
    def __init__(self, world: World, node_id: int) -> None:
        self._world = world
        self._node_id = node_id

    async def probe(self, broker: BrokerRegistration, *, was_reached: bool) -> ProbeOutcome:
        world = self._world
        await asyncio.sleep(world.random.uniform(0.0002, 0.005))
        (endpoint,) = broker.endpoints
        process = world.at_port(endpoint.port)
        cut = any(item.is_cut for item in world.processes if item.port == endpoint.port)
        if cut or self._node_id in world.quorum.cut_off:
            await asyncio.sleep(PROBE_TIMEOUT_S)
            return ProbeOutcome(ProbeResult.UNSURE)
        if process is None or process.is_hidden or world.random.random() < world.false_refusals:
            is_voter = broker.id in world.quorum.voter_ids and process is None
            return ProbeOutcome(ProbeResult.REFUSED, at_voter_address=is_voter and not was_reached)
        if not process.goes_on.is_set():
            await asyncio.sleep(PROBE_TIMEOUT_S)
            return ProbeOutcome(ProbeResult.UNSURE)
        if process.incarnation_id != broker.incarnation_id:
            return ProbeOutcome(ProbeResult.REPLACED)
        return ProbeOutcome(ProbeResult.ANSWERED, SimulatedConnection(process))
