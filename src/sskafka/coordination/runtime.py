"""The contexts of one internal topic on this broker, by partition, as in Kafka's CoordinatorRuntime.

When the replicas have applied new metadata, the runtime starts a context for every partition that this broker now
leads, and stops the contexts of partitions that it no longer leads. `make_shard` creates the shard of a context: groups
for __consumer_offsets, transactions for __transaction_state.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from sskafka.coordination.context import (
    CoordinatorContext,
    CoordinatorEnvironment,
    CoordinatorState,
    Operation,
    Perform,
    ShardParameters,
)
from sskafka.coordination.internal_topics import partition_of
from sskafka.coordination.log import PartitionLog
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage, TopicImage
from sskafka.model.coordination import Completion, CoordinatorShard
from sskafka.model.counters import Sample
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ProducerIdAndEpoch
from sskafka.replication.errors import ReplicationError
from sskafka.replication.replica_manager import ReplicaManager

S = TypeVar("S", bound=CoordinatorShard[Any])


class CoordinatorRuntime(Generic[S]):
    """`perform` carries out the effects of decisions, see context.py."""

    def __init__(
        self,
        topic: str,
        replicas: ReplicaManager,
        make_shard: Callable[[ShardParameters], S],
        environment: CoordinatorEnvironment,
        perform: Perform | None = None,
    ) -> None:
        self.topic = topic
        self.contexts: dict[int, CoordinatorContext[S]] = {}
        self._replicas = replicas
        self._make_shard = make_shard
        self._environment = environment
        self._perform = perform
        self.on_begun: Callable[[CoordinatorContext[S]], None] | None = None
        """Called with every context that starts to load."""

    # -- what is asked

    def partition_of(self, key: str) -> int | None:
        """Return the partition of a key, or None while the internal topic does not exist."""
        count = self._replicas.partition_count(self.topic)
        return partition_of(key, count) if count else None

    def write(self, key: str, operation: Operation[S], completion: Completion) -> None:
        context = self._context_of(key, completion)
        if context is not None:
            context.write(operation, completion)

    def read(self, key: str, question: Callable[[S, int], Any], completion: Completion) -> None:
        context = self._context_of(key, completion)
        if context is not None:
            context.read(question, completion)

    def end_transaction(
        self,
        partition: int,
        producer: ProducerIdAndEpoch,
        coordinator_epoch: int,
        is_committed: bool,
        completion: Completion,
    ) -> None:
        """Append a transaction marker to a partition of this topic."""
        context = self._context(partition, completion)
        if context is not None:
            context.end_transaction(producer, coordinator_epoch, is_committed, completion)

    def is_coordinator(self, key: str, leader_epoch: int) -> bool:
        """Return whether this broker still coordinates the key in the given leader epoch."""
        partition = self.partition_of(key)
        context = None if partition is None else self.contexts.get(partition)
        return context is not None and context.leader_epoch == leader_epoch

    def active_shard(self, key: str) -> S | None:
        """Return the shard of a key, or None if this broker does not coordinate the key, or is loading."""
        partition = self.partition_of(key)
        context = None if partition is None else self.contexts.get(partition)
        return context.shard if context is not None and context.state is CoordinatorState.ACTIVE else None

    def all_contexts(self) -> list[CoordinatorContext[S]]:
        """Return all contexts, loaded or not."""
        return list(self.contexts.values())

    def active_contexts(self) -> Iterator[CoordinatorContext[S]]:
        return (context for context in list(self.contexts.values()) if context.state is CoordinatorState.ACTIVE)

    def samples(self, prefix: str) -> Iterator[Sample]:
        """Yield the number of contexts by state, and how long loading took."""
        counts = Counter(context.state for context in self.contexts.values())
        for state in CoordinatorState:
            yield Sample(prefix + "num_partitions", (("state", state.value),), counts[state])
        yield from self._environment.loads.samples(prefix)

    @property
    def is_loading(self) -> bool:
        return any(context.state is CoordinatorState.LOADING for context in self.contexts.values())

    def _context_of(self, key: str, completion: Completion) -> CoordinatorContext[S] | None:
        partition = self.partition_of(key)
        if partition is None:
            completion.refuse(ErrorCode.NOT_COORDINATOR)
            return None
        return self._context(partition, completion)

    def _context(self, partition: int, completion: Completion) -> CoordinatorContext[S] | None:
        """Return the context, or refuse. A partition that this broker is about to lead counts as loading."""
        context = self.contexts.get(partition)
        if context is None:
            leadership = self._replicas.leadership_of(self.topic, partition)
            is_ours = leadership is not None and leadership.is_led_by(self._replicas.broker_id)
            completion.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_ours else ErrorCode.NOT_COORDINATOR)
        return context

    # -- what the metadata says

    def metadata_changed(self, delta: MetadataDelta, image: ClusterImage) -> None:
        """Called when the replicas match `image`."""
        if any(topic.name == self.topic for topic in delta.topics_deleted.values()):
            self.stop()
        topic = image.topics_by_name.get(self.topic)
        if topic is not None:
            for partition in delta.partitions_changed.get(topic.topic_id, ()):
                self._check_leadership(topic, partition)

    def _check_leadership(self, topic: TopicImage, partition: int) -> None:
        """Start a new context for a new leader epoch, even with the same leader: another may have led in between."""
        state = topic.partitions[partition]
        context = self.contexts.get(partition)
        is_ours = state.leader == self._replicas.broker_id
        if context is not None and not (is_ours and context.leader_epoch >= state.leader_epoch):
            self.contexts.pop(partition).stop()
            context = None
        if context is None and is_ours:
            self._begin(topic, partition)

    def _begin(self, topic: TopicImage, partition: int) -> None:
        try:
            replica = self._replicas.find(topic.topic_id, partition)
        except ReplicationError:
            return  # its log directory is offline
        if replica.is_leader:
            context = self.contexts[partition] = CoordinatorContext(
                partition, PartitionLog(replica), self._make_shard, self._environment, self._perform
            )
            if self.on_begun is not None:
                self.on_begun(context)

    def stop(self) -> None:
        while self.contexts:
            self.contexts.popitem()[1].stop()
