"""Changes of in-sync replicas are sent to the controller in requests that it accepts, however many there are."""

from collections.abc import Callable
from typing import Any, cast

from sskafka.model.ids import TopicPartition
from sskafka.partition.in_sync_replicas import IsrChange
from sskafka.replication.cluster_links import ClusterLinks
from sskafka.replication.isr_changes import PARTITIONS_MAX, IsrChanges
from sskafka.replication.partition import Partition
from sskafka.wire.codec import decode, encode
from sskafka.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse, ResponseTopicData
from sskafka.wire.messages.alter_partition import ResponsePartitionData as Result

VERSION = 3
CHANGES = 2 * PARTITIONS_MAX + 7
CHANGE = IsrChange(0, 0, tuple(range(15)), tuple(range(15)))


class WaitingPartition:
    def __init__(self, number: int) -> None:
        self.topic_id = (number + 1).to_bytes(16, "big")
        self.topic_partition = TopicPartition(f"topic-{number}", 0)
        self.is_committed = False

    def is_waiting_for(self, change: IsrChange) -> bool:
        return not self.is_committed

    def isr_committed(self, *_: object) -> None:
        self.is_committed = True


class Controller:
    """Decodes requests with the bounds of its listener and commits all changes."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def ask(self, request: Any, response_class: type[Any], answered: Callable[[Any], None]) -> None:
        request = decode(AlterPartitionRequest, VERSION, encode(request, VERSION))
        self.sizes.append(len(request.topics))
        topics = [ResponseTopicData(topic.topic_id, [Result(0, isr=list(CHANGE.isr))]) for topic in request.topics]
        answered(AlterPartitionResponse(topics=topics))

    def close(self) -> None: ...


def test_many_changes_need_several_requests() -> None:
    controller, soon = Controller(), list[Callable[[], None]]()
    links = ClusterLinks(lambda _: controller, controller, lambda _, call: soon.append(call), lambda: 1)
    changes = IsrChanges(1, links)
    partitions = [WaitingPartition(number) for number in range(CHANGES)]
    for partition in partitions:
        changes.ask(cast("Partition", partition), CHANGE)
    for call in soon:
        call()
    assert all(partition.is_committed for partition in partitions)
    assert controller.sizes == [PARTITIONS_MAX, PARTITIONS_MAX, 7]
