"""Several nodes of a quorum on one loop of virtual time: disks in memory, and a network that can be cut."""

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from simulated_disk import SimulatedDisk
from virtual_loop import InlineExecutor, LoopClock

from sskafka.controller.broker_watch import BrokerProber
from sskafka.controller.client_decisions import ClientDecisions
from sskafka.controller.control_plane import ControlPlane
from sskafka.lab.quorum_files import maybe_keep_files
from sskafka.metadata.brokers.lifecycle import supported_features
from sskafka.model.errors import ErrorCode
from sskafka.model.settings import Settings
from sskafka.quorum.driver import Done, NoResponse
from sskafka.quorum.raft_messages import request_from_wire, response_from_wire, response_to_wire, to_wire
from sskafka.raft.messages import PeerRequest, Response
from sskafka.wire.codec import decode, encode
from sskafka.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from sskafka.wire.messages.broker_registration import BrokerRegistrationRequest
from sskafka.wire.schema import Message

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"


class Quorum:
    """`disks` outlive their nodes; `cut_off` nodes hear and say nothing."""

    def __init__(
        self, count: int = 3, observers: int = 0, settings: dict[str, str] | None = None, seed: int = 11
    ) -> None:
        self.voter_ids = list(range(1, count + 1))
        self.node_ids = list(range(1, count + observers + 1))
        self.settings = dict(settings or {})
        self.disks = {node_id: SimulatedDisk() for node_id in self.node_ids}
        self.planes: dict[int, ControlPlane] = {}
        self.failures: dict[int, BaseException] = {}
        self.cut_off: set[int] = set()
        self.crashed = {node_id: asyncio.Event() for node_id in self.node_ids}
        """Set when the node crashes: its connections break."""
        self.prober_of: Callable[[int], BrokerProber] | None = None
        """How a node reaches brokers; None: over sockets."""
        self._random = Random(seed)

    def start(self, *node_ids: int) -> None:
        for node_id in node_ids or self.node_ids:
            voters = ",".join(f"{voter}@127.0.0.1:{9000 + voter}" for voter in self.voter_ids)
            settings = Settings.resolve(
                {
                    **self.settings,
                    "node.id": str(node_id),
                    "log.dirs": "/data",
                    "controller.quorum.voters": voters,
                    "process.roles": "broker,controller" if node_id in self.voter_ids else "broker",
                }
            )
            plane = ControlPlane(
                settings,
                CLUSTER_ID,
                self.disks[node_id],
                LoopClock(),
                InlineExecutor(),
                self._random.randbytes,
                self._random,
                lambda error, node=node_id: self.failures.setdefault(node, error),
                ClientDecisions,
                _Wires(self, node_id),
                self.prober_of(node_id) if self.prober_of is not None else None,
                maybe_keep_files,
            )
            self.planes[node_id] = plane
            plane.start()

    async def stop(self) -> None:
        await asyncio.gather(*(plane.stop() for plane in self.planes.values()))

    def crash(self, node_id: int) -> None:
        """What was not synced is lost."""
        plane = self.planes.pop(node_id)
        plane._driver.stop()
        plane.controller.follow("it crashed")
        plane._periodic.end()
        plane._watch.stop()
        self.crashed[node_id].set()
        self.crashed[node_id] = asyncio.Event()
        self.disks[node_id].crash(self._random)

    async def until(self, condition: Callable[[], bool], what: str, timeout_s: float = 60) -> None:
        end_s = asyncio.get_running_loop().time() + timeout_s
        while not condition():
            assert asyncio.get_running_loop().time() < end_s, f"not within {timeout_s} s: {what}"
            await asyncio.sleep(0.005)

    async def controller(self, *among: int) -> ControlPlane:
        """The active controller, as soon as there is one."""
        found: list[ControlPlane] = []

        def is_there() -> bool:
            found[:] = [
                plane
                for node_id, plane in self.planes.items()
                if plane.controller.is_active and (not among or node_id in among)
            ]
            return bool(found)

        await self.until(is_there, "a controller is active")
        return max(found, key=lambda plane: plane.leader_epoch)


class _Wires:
    """Every message is written and read as on a real wire."""

    def __init__(self, quorum: Quorum, node_id: int) -> None:
        self._quorum = quorum
        self._node_id = node_id
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, to: int, request: PeerRequest, done: Done) -> None:
        task = asyncio.get_running_loop().create_task(self._exchange(to, request, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _exchange(self, to: int, request: PeerRequest, done: Done) -> None:
        await asyncio.sleep(0)
        target = self._quorum.planes.get(to)
        if {to, self._node_id} & self._quorum.cut_off:
            await asyncio.sleep(0.01)
            done(NoResponse.LOST)
            return
        if target is None:
            await asyncio.sleep(0.001)
            done(NoResponse.REFUSED)
            return
        sent = to_wire(request, CLUSTER_ID, to)
        version = sent.SCHEMA.versions.last
        received = decode(type(sent), version, encode(sent, version))
        answer = await self._answer_of(to, target.ask_raft(request_from_wire(received, CLUSTER_ID, to)))
        if answer is None:
            done(NoResponse.LOST)
            return
        read = response_from_wire(decode(type(answer), version, encode(answer, version)))
        done(NoResponse.LOST if {to, self._node_id} & self._quorum.cut_off else read)

    async def _answer_of(self, to: int, asked: Coroutine[Any, Any, Response]) -> Message | None:
        """None when the node crashes before it answers."""
        answering = asyncio.ensure_future(asked)
        crashing = asyncio.ensure_future(self._quorum.crashed[to].wait())
        await asyncio.wait((answering, crashing), return_when=asyncio.FIRST_COMPLETED)
        crashing.cancel()
        if not answering.done():
            answering.cancel()
            return None
        return response_to_wire(answering.result())


async def register_broker(controller: ControlPlane, broker_id: int = 1, incarnation: int = 1) -> int:
    request = BrokerRegistrationRequest(
        broker_id, CLUSTER_ID, bytes([incarnation] * 16), features=supported_features(), log_dirs=[bytes([9] * 16)]
    )
    """A broker that is registered and unfenced; its epoch."""
    response = await controller.decide(request)
    assert response.error_code == ErrorCode.NONE
    epoch: int = response.broker_epoch
    beat = await controller.decide(BrokerHeartbeatRequest(broker_id, epoch, epoch))
    assert (beat.error_code, beat.is_fenced) == (ErrorCode.NONE, False)
    return epoch
