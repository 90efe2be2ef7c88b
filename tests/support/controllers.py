"""A quorum of one node for tests: on any disk, started, then stopped, or left as a crash leaves it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from sskafka.controller.client_decisions import ClientDecisions
from sskafka.controller.control_plane import ControlPlane
from sskafka.lab.quorum_files import maybe_keep_files
from sskafka.metadata.brokers.lifecycle import supported_features
from sskafka.model.settings import Settings
from sskafka.runtime.clock import SystemClock
from sskafka.storage.disk import Disk
from sskafka.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from sskafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
TIMEOUT_S = 10
NOW_MS = 1_800_000_000_000


class Node:
    """`failure` is what ended it."""

    def __init__(self, disk: Disk, directory: str, settings: dict[str, str] | None = None) -> None:
        given = {"node.id": "1", "log.dirs": directory, **(settings or {})}
        self.failure: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        self._executor = ThreadPoolExecutor(1)
        try:
            self.plane = ControlPlane(
                Settings.resolve(given),
                CLUSTER_ID,
                disk,
                SystemClock(),
                self._executor,
                Random(7).randbytes,
                Random(7),
                self._fail,
                ClientDecisions,
                observe=maybe_keep_files,
            )
        except BaseException:
            self._executor.shutdown()
            raise
        self._link = self.plane.new_link()

    def _fail(self, error: BaseException) -> None:
        if not self.failure.done():
            self.failure.set_result(error)

    async def ask(self, request: Any) -> Any:
        return await self._link.ask(request, TIMEOUT_S * 1000)

    async def start(self) -> None:
        """Returns when this node is the active controller; raises what keeps it from that."""
        self.plane.start()
        while not self.plane.controller.is_active:
            if self.failure.done():
                raise self.failure.result()
            await self.plane.leader_changed(0.01)

    async def stop(self) -> None:
        await self.plane.stop()
        self._executor.shutdown()

    def crash(self) -> None:
        """Nothing more is written, and nothing closed."""
        self.plane._driver.stop()
        self._executor.shutdown()


@asynccontextmanager
async def running(disk: Disk, directory: str, settings: dict[str, str] | None = None) -> AsyncIterator[Node]:
    node = Node(disk, directory, settings)
    try:
        await node.start()
        yield node
    except BaseException:
        node.crash()
        raise
    if node.failure.done():
        node.crash()
    else:
        await node.stop()


async def until(condition: Callable[[], bool]) -> None:
    """Looks again and again; a TimeoutError when that takes too long."""
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def register(node: Node, incarnation: int = 1) -> BrokerRegistrationResponse:
    request = BrokerRegistrationRequest(
        1, CLUSTER_ID, bytes([incarnation] * 16), features=supported_features(), log_dirs=[bytes([9] * 16)]
    )
    response: BrokerRegistrationResponse = await node.ask(request)
    return response


async def create(node: Node, name: str, partitions: int = 1) -> CreateTopicsResponse:
    response: CreateTopicsResponse = await node.ask(CreateTopicsRequest([CreatableTopic(name, partitions, 1)]))
    return response
