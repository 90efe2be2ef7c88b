"""Partition reassignments: move partitions to other brokers.

    replicas 1 2 3, target 4 2 3:

    replicas 4 2 3 1    adding 4    removing 1      4 fetches until it is in sync
    replicas 4 2 3                                  1 is removed when an ISR with 4 is accepted

A reassignment completes with the first ISR change that allows it (`partitions.change`), at the latest with the
AlterPartition that adds the last adding replica. Cancelling a reassignment is a reassignment to the original replicas.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from sskafka.metadata.controller_result import ControllerResult
from sskafka.metadata.election_rules import ElectionRules
from sskafka.metadata.image import ClusterImage, TopicImage
from sskafka.metadata.partitions.change import plan_change, without
from sskafka.metadata.partitions.image import PartitionImage
from sskafka.metadata.placement import check_replicas, only_directory
from sskafka.metadata.records import MetadataRecord, PartitionChangeRecord
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.settings import Settings
from sskafka.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
)
from sskafka.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def alter_partition_reassignments(
    image: ClusterImage, request: AlterPartitionReassignmentsRequest, settings: Settings
) -> ControllerResult[AlterPartitionReassignmentsResponse]:
    draft = _Draft(ElectionRules(image, settings), request.allow_replication_factor_change)
    topics = [draft.alter_topic(topic) for topic in request.topics]
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, error_message=None, responses=topics
    )
    return ControllerResult(draft.records, response)


def list_partition_reassignments(
    image: ClusterImage, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    topics = []
    for name, numbers in _requested(image, request):
        ongoing = list(_ongoing(image, name, numbers))
        if ongoing:
            topics.append(OngoingTopicReassignment(name, ongoing))
    return ListPartitionReassignmentsResponse(error_message=None, topics=topics)


class _Draft:
    """The reassignments of one request; each partition may occur only once."""

    def __init__(self, rules: ElectionRules, may_change_replication_factor: bool) -> None:
        self.records: list[MetadataRecord] = []
        self._rules = rules
        self._may_change_replication_factor = may_change_replication_factor
        self._seen: set[tuple[str, int]] = set()

    def alter_topic(self, wanted: ReassignableTopic) -> ReassignableTopicResponse:
        answers = []
        for partition in wanted.partitions:
            try:
                self._alter(wanted.name, partition)
                answers.append(ReassignablePartitionResponse(partition.partition_index, error_message=None))
            except KafkaError as error:
                refused = ReassignablePartitionResponse(partition.partition_index, error.code, str(error))
                answers.append(refused)
        return ReassignableTopicResponse(wanted.name, answers)

    def _alter(self, topic_name: str, wanted: ReassignablePartition) -> None:
        number = wanted.partition_index
        topic = self._rules.image.topics_by_name.get(topic_name)
        if topic is None or number not in topic.partitions:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic_name}-{number}")
        if (topic_name, number) in self._seen:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the request contains the partition more than once")
        self._seen.add((topic_name, number))
        record = self._cancel(topic, number) if wanted.replicas is None else self._move(topic, number, wanted.replicas)
        if record is not None:
            self.records.append(record)

    def _move(self, topic: TopicImage, number: int, target: Sequence[int]) -> PartitionChangeRecord | None:
        state = topic.partitions[number]
        check_replicas(self._rules.image, target)
        present = len(without(state.replicas, state.removing_replicas))
        if len(target) != present and not self._may_change_replication_factor:
            message = f"{len(target)} replicas would change the replication factor {present}"
            raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, message)
        return plan_change(self._rules, topic, number, _with_target(self._rules.image, state, target))

    def _cancel(self, topic: TopicImage, number: int) -> PartitionChangeRecord | None:
        state = topic.partitions[number]
        if not state.is_reassigning:
            raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
        origin = without(state.replicas, state.adding_replicas)
        wanted = _with_target(self._rules.image, state, origin)
        if state.isr and set(state.isr) <= set(state.adding_replicas):
            wanted = self._without_in_sync_replica(topic, number, wanted)
        return plan_change(self._rules, topic, number, wanted)

    def _without_in_sync_replica(self, topic: TopicImage, number: int, wanted: PartitionImage) -> PartitionImage:
        """Handle that no remaining replica is in sync: only an unclean election can restore the original replicas."""
        if not self._rules.allows_unclean(topic.name):
            message = f"cancelling the reassignment of {topic.name}-{number} requires an unclean leader election"
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
        replicas = without(wanted.replicas, wanted.removing_replicas)
        directories = tuple(wanted.directory_of(replica) for replica in replicas)
        return replace(wanted, replicas=replicas, directories=directories, isr=(), removing_replicas=())


def _with_target(image: ClusterImage, state: PartitionImage, target: Sequence[int]) -> PartitionImage:
    """Return the partition with both its current replicas and the target replicas.

    A replica that was only being added, and is in neither the ISR nor the ELR, is removed at once.
    """
    settled = without(state.replicas, state.adding_replicas)
    needed = {*settled, *state.isr, *state.eligible_leader_replicas, *state.last_known_eligible_leader_replicas}
    removing = tuple(replica for replica in state.replicas if replica in needed and replica not in target)
    replicas = (*target, *removing)
    known = dict(zip(state.replicas, state.directories, strict=True))
    return replace(
        state,
        replicas=replicas,
        directories=tuple(known[each] if each in known else only_directory(image, each) for each in replicas),
        adding_replicas=without(tuple(target), settled),
        removing_replicas=removing,
    )


def _requested(image: ClusterImage, request: ListPartitionReassignmentsRequest) -> Iterator[tuple[str, Iterable[int]]]:
    if request.topics is None:
        for topic in image.topics_by_name.values():
            yield topic.name, sorted(topic.partitions)
    else:
        for wanted in request.topics:
            yield wanted.name, wanted.partition_indexes


def _ongoing(image: ClusterImage, topic_name: str, numbers: Iterable[int]) -> Iterator[OngoingPartitionReassignment]:
    for number in numbers:
        state = image.partition(topic_name, number)
        if state is not None and state.is_reassigning:
            yield OngoingPartitionReassignment(
                number, list(state.replicas), list(state.adding_replicas), list(state.removing_replicas)
            )
