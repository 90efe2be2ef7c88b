"""AddOffsetsToTxn: the coordinator adds no partition of __consumer_offsets that it does not know.

At the end of the transaction it would take it for deleted, and its offsets would be pending for ever."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from sskafka.metadata.image import ClusterImage, TopicImage
from sskafka.metadata.partitions.image import PartitionImage
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition
from sskafka.model.settings import Settings
from sskafka.servers.kafka.handlers.transactions import TransactionHandlers
from sskafka.servers.kafka.topic_creation import InternalTopics
from sskafka.transactions.metadata import TransactionResult
from sskafka.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest

OFFSETS = "__consumer_offsets"
REQUEST = SimpleNamespace(version=3, may_on_transactional_id=lambda *_: True, may_on_group=lambda *_: True)


class Coordinator:
    def __init__(self) -> None:
        self.added: list[TopicPartition] = []

    async def add_partitions(
        self, name: str, producer: object, partitions: list[TopicPartition], version: int
    ) -> TransactionResult:
        self.added += partitions
        return TransactionResult()


class Controller:
    """Makes a topic, of which this broker hears only with `publish`."""

    def __init__(self) -> None:
        self.image = ClusterImage()
        self.asked: list[str] = []
        self.is_reached = True

    async def ask(self, request: Any, timeout_ms: int) -> Any:
        if not self.is_reached:
            raise TimeoutError
        self.asked += [topic.name for topic in request.topics]
        self.publish(partitions=7)
        return SimpleNamespace(topics=[])

    def publish(self, partitions: int) -> None:
        states = {index: PartitionImage((1,), (1,), 1, 0, 0) for index in range(partitions)}
        self.image = ClusterImage()
        self.image.topics_by_name[OFFSETS] = TopicImage(OFFSETS, b"o" * 16, states)


def add_offsets(controller: Controller, coordinator: Coordinator) -> ErrorCode:
    async def run() -> ErrorCode:
        settings = Settings.resolve(file={}, environment={}, overrides={"node.id": "1"})
        view = cast(Any, controller)
        topics = InternalTopics(view, view, settings, lambda applied: applied())

        async def partition_of(group_id: str) -> int | None:
            topic = await topics.find_or_create(OFFSETS)
            return None if topic is None else len(topic.partitions) - 1

        handlers = TransactionHandlers(cast(Any, coordinator), lambda: controller.image, partition_of)
        asked = AddOffsetsToTxnRequest("copying", 1, 0, "group")
        return ErrorCode((await handlers.add_offsets(asked, cast(Any, REQUEST))).error_code)

    return asyncio.run(run())


def test_the_topic_is_made_first() -> None:
    controller, coordinator = Controller(), Coordinator()
    assert add_offsets(controller, coordinator) is ErrorCode.NONE
    assert controller.asked == [OFFSETS]
    assert coordinator.added == [TopicPartition(OFFSETS, 6)], "counted by the topic, not by this broker's settings"


def test_a_topic_that_is_there_is_not_asked_for() -> None:
    controller, coordinator = Controller(), Coordinator()
    controller.publish(partitions=3)
    assert add_offsets(controller, coordinator) is ErrorCode.NONE
    assert controller.asked == []
    assert coordinator.added == [TopicPartition(OFFSETS, 2)]


def test_nothing_is_enrolled_while_it_cannot_be_made() -> None:
    controller, coordinator = Controller(), Coordinator()
    controller.is_reached = False
    assert add_offsets(controller, coordinator) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert coordinator.added == []
