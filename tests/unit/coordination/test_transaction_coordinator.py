"""The responses of the transaction coordinator to the leaders of partitions."""

from typing import Any, cast

from sskafka.coordination.context import CoordinatorEnvironment
from sskafka.coordination.runtime import CoordinatorRuntime
from sskafka.coordination.transaction_coordinator import TransactionCoordinator
from sskafka.coordination.transaction_markers import MarkerSender
from sskafka.metadata.image import ClusterImage, TopicImage
from sskafka.metadata.partitions.image import PartitionImage
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ProducerIdAndEpoch, TopicPartition
from sskafka.model.settings import Settings
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.transactions.shard import TransactionCoordinatorShard

A, NEW = TopicPartition("a", 0), TopicPartition("new", 0)
ME = ProducerIdAndEpoch(7, 3)


class Asked:
    """Stands for the shards: notes that they were asked."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def write(self, key: str, operation: object, completion: object) -> None:
        self.names.append(key)

    read = write


async def no_ids() -> int:
    raise AssertionError("no id is needed")


def test_a_partition_that_the_coordinator_has_not_heard_of_is_not_taken_on() -> None:
    """At the end of the transaction it would be taken for deleted, get no marker, and hold up readers for ever."""
    image = ClusterImage()
    image.topics_by_name["a"] = TopicImage("a", b"1" * 16, {0: PartitionImage((1,), (1,), 1, 0, 0)})
    coordinator = TransactionCoordinator(
        cast(ReplicaManager, None),
        Settings.resolve(overrides={"node.id": "1"}),
        cast(CoordinatorEnvironment, None),
        lambda: image,
        no_ids,
        cast(MarkerSender, None),
    )
    contexts = Asked()
    coordinator._runtime = cast(CoordinatorRuntime[TransactionCoordinatorShard], cast(Any, contexts))
    heard: list[dict[TopicPartition, ErrorCode]] = []
    coordinator.answer_leader("pay", ME, [A, NEW], True, heard.append)
    assert heard == [dict.fromkeys([A, NEW], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert not contexts.names
    coordinator.answer_leader("pay", ME, [A], True, heard.append)
    coordinator.answer_leader("pay", ME, [A, NEW], False, heard.append)
    assert contexts.names == ["pay", "pay"], "what is only verified has been added before"
