"""The shards of one internal topic on this broker: which there are, and which of them a key belongs to.

Told of metadata once it is in effect, it begins a shard for every partition that this broker has come to lead and
stops the others. `make_machine` makes the state machine of a shard: groups for __consumer_offsets, transactions for
__transaction_state.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from sskafka.coordination.internal_topics import partition_of
from sskafka.coordination.shard import Operation, Perform, Place, Shard, ShardRuntime, ShardState
from sskafka.coordination.shard_log import PartitionLog
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage, TopicImage
from sskafka.model.coordination import Completion, StateMachine, TransactionalProducer
from sskafka.model.counters import Sample
from sskafka.model.errors import ErrorCode
from sskafka.replication.errors import ReplicationError
from sskafka.replication.replica_manager import ReplicaManager

M = TypeVar("M", bound=StateMachine[Any])


class Coordinator(Generic[M]):
    """`perform` carries out the effects of decisions, see shard.py."""

    def __init__(
        self,
        topic: str,
        replicas: ReplicaManager,
        make_machine: Callable[[Place], M],
        runtime: ShardRuntime,
        perform: Perform | None = None,
    ) -> None:
        self.topic = topic
        self.shards: dict[int, Shard[M]] = {}
        self._replicas = replicas
        self._make_machine = make_machine
        self._runtime = runtime
        self._perform = perform
        self.on_begun: Callable[[Shard[M]], None] | None = None
        """Hears of every shard that begins to load."""

    # -- what is asked

    def partition_of(self, key: str) -> int | None:
        """None while the internal topic does not exist."""
        count = self._replicas.partition_count(self.topic)
        return partition_of(key, count) if count else None

    def write(self, key: str, operation: Operation[M], completion: Completion) -> None:
        shard = self._shard_of(key, completion)
        if shard is not None:
            shard.write(operation, completion)

    def read(self, key: str, question: Callable[[M, int], Any], completion: Completion) -> None:
        shard = self._shard_of(key, completion)
        if shard is not None:
            shard.read(question, completion)

    def end_transaction(
        self,
        partition: int,
        producer: TransactionalProducer,
        coordinator_epoch: int,
        is_committed: bool,
        completion: Completion,
    ) -> None:
        """For a marker that belongs into a partition of this topic."""
        shard = self._shard(partition, completion)
        if shard is not None:
            shard.end_transaction(producer, coordinator_epoch, is_committed, completion)

    def is_in_charge(self, key: str, leader_epoch: int) -> bool:
        """Whether this broker still coordinates the key, as it did in that leader epoch."""
        partition = self.partition_of(key)
        shard = None if partition is None else self.shards.get(partition)
        return shard is not None and shard.leader_epoch == leader_epoch

    def all_shards(self) -> list[Shard[M]]:
        """Loaded or not."""
        return list(self.shards.values())

    def active_shards(self) -> Iterator[Shard[M]]:
        return (shard for shard in list(self.shards.values()) if shard.state is ShardState.ACTIVE)

    def samples(self, prefix: str) -> Iterator[Sample]:
        """Of its shards, by their states, and of how they were loaded."""
        counts = Counter(shard.state for shard in self.shards.values())
        for state in ShardState:
            yield Sample(prefix + "num_partitions", (("state", state.value),), counts[state])
        yield from self._runtime.loads.samples(prefix)

    @property
    def is_loading(self) -> bool:
        return any(shard.state is ShardState.LOADING for shard in self.shards.values())

    def _shard_of(self, key: str, completion: Completion) -> Shard[M] | None:
        partition = self.partition_of(key)
        if partition is None:
            completion.refuse(ErrorCode.NOT_COORDINATOR)
            return None
        return self._shard(partition, completion)

    def _shard(self, partition: int, completion: Completion) -> Shard[M] | None:
        """A partition that this broker is about to lead is as good as one that is being loaded."""
        shard = self.shards.get(partition)
        if shard is None:
            leadership = self._replicas.leadership_of(self.topic, partition)
            is_ours = leadership is not None and leadership.is_led_by(self._replicas.broker_id)
            completion.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_ours else ErrorCode.NOT_COORDINATOR)
        return shard

    # -- what the metadata says

    def metadata_changed(self, delta: MetadataDelta, image: ClusterImage) -> None:
        """Called when the replicas are as `image` has them."""
        if any(topic.name == self.topic for topic in delta.topics_deleted.values()):
            self.stop()
        topic = image.topics_by_name.get(self.topic)
        if topic is not None:
            for partition in delta.partitions_changed.get(topic.topic_id, ()):
                self._check_leadership(topic, partition)

    def _check_leadership(self, topic: TopicImage, partition: int) -> None:
        """A new leader epoch begins a new shard, even with the same leader: another may have led in between."""
        state = topic.partitions[partition]
        shard = self.shards.get(partition)
        is_ours = state.leader == self._replicas.broker_id
        if shard is not None and not (is_ours and shard.leader_epoch >= state.leader_epoch):
            self.shards.pop(partition).stop()
            shard = None
        if shard is None and is_ours:
            self._begin(topic, partition)

    def _begin(self, topic: TopicImage, partition: int) -> None:
        try:
            replica = self._replicas.find(topic.topic_id, partition)
        except ReplicationError:
            return  # its log directory is offline
        if replica.is_leader:
            shard = self.shards[partition] = Shard(
                partition, PartitionLog(replica), self._make_machine, self._runtime, self._perform
            )
            if self.on_begun is not None:
                self.on_begun(shard)

    def stop(self) -> None:
        while self.shards:
            self.shards.popitem()[1].stop()
