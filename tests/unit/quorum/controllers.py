"""A local controller for tests: on any disk, started and run, then stopped, or left as a crash leaves it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

from sskafka.metadata.broker_lifecycle import start_single_broker, supported_features
from sskafka.metadata.topics import create_topics
from sskafka.model.ids import METADATA_TOPIC, METADATA_TOPIC_ID, TopicPartition
from sskafka.model.settings import Settings
from sskafka.quorum.local import LocalController
from sskafka.quorum.metadata_log import metadata_log_config
from sskafka.storage.disk import Disk
from sskafka.storage.log_directory import LogDirectory
from sskafka.storage.recovery import open_log
from sskafka.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from sskafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
SETTINGS = Settings.resolve({"node.id": "1"})
NOW_MS = 1_800_000_000_000


class StandingClock:
    def now_ms(self) -> int:
        return NOW_MS

    def monotonic_ms(self) -> float:
        return 0.0


def new_controller(disk: Disk, directory: str, settings: Settings = SETTINGS) -> LocalController:
    """On the metadata log as it is on disk, believed no further than after a crash."""
    log = open_log(
        LogDirectory(disk, directory),
        f"{directory}/__cluster_metadata-0",
        TopicPartition(METADATA_TOPIC, 0),
        metadata_log_config(settings),
        now_ms=NOW_MS,
        topic_id=METADATA_TOPIC_ID,
    )
    return LocalController(log, settings, StandingClock())


@asynccontextmanager
async def running(disk: Disk, directory: str, settings: Settings = SETTINGS) -> AsyncIterator[LocalController]:
    controller = new_controller(disk, directory, settings)
    await controller.start()
    task = asyncio.create_task(controller.run())
    try:
        yield controller
    finally:
        controller.stop()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # looked at by the tests that expect one


async def register(controller: LocalController, incarnation: int = 1) -> BrokerRegistrationResponse:
    request = BrokerRegistrationRequest(
        1, CLUSTER_ID, bytes([incarnation] * 16), features=supported_features(), log_dirs=[bytes([9] * 16)]
    )
    return await controller.submit(lambda image: start_single_broker(image, request, CLUSTER_ID, SETTINGS))


async def create(controller: LocalController, name: str, partitions: int = 1) -> CreateTopicsResponse:
    request = CreateTopicsRequest([CreatableTopic(name, partitions, 1)])
    random = Random(name)
    return await controller.submit(lambda image: create_topics(image, request, SETTINGS, random.randbytes))
