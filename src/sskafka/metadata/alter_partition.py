"""AlterPartition: a partition leader changes the ISR, because followers caught up or fell behind.

The request is a compare-and-set. It names the leader epoch and partition epoch that the leader knows. If the image has
other epochs, the leader's state is stale and the request is rejected. A follower may join the ISR only if its broker is
neither fenced nor in controlled shutdown and still has the broker epoch with which it fetched (KIP-903).
"""

from collections.abc import Sequence
from dataclasses import replace

from sskafka.metadata.controller_result import ControllerResult
from sskafka.metadata.election_rules import ElectionRules
from sskafka.metadata.image import ClusterImage, TopicImage
from sskafka.metadata.partitions.change import RECOVERED, RECOVERING, plan_change
from sskafka.metadata.partitions.image import PartitionImage
from sskafka.metadata.records import MetadataRecord, PartitionChangeRecord
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import Uuid
from sskafka.model.settings import Settings
from sskafka.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
    ResponseTopicData,
)

ANY_EPOCH = -1


def alter_partition(
    image: ClusterImage, request: AlterPartitionRequest, settings: Settings
) -> ControllerResult[AlterPartitionResponse]:
    sender = image.brokers.get(request.broker_id)
    if sender is None or sender.epoch != request.broker_epoch:
        return ControllerResult((), AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    draft = _Draft(image, request.broker_id, settings)
    topics = [draft.alter_topic(topic) for topic in request.topics]
    return ControllerResult(draft.records, AlterPartitionResponse(topics=topics))


class _Draft:
    """The changes of one request; each partition may occur only once."""

    def __init__(self, image: ClusterImage, broker_id: int, settings: Settings) -> None:
        self.records: list[MetadataRecord] = []
        self._image = image
        self._broker_id = broker_id
        self._rules = ElectionRules(image, settings)
        self._seen: set[tuple[Uuid, int]] = set()

    def alter_topic(self, wanted: RequestTopicData) -> ResponseTopicData:
        topic = self._image.topics_by_id.get(wanted.topic_id)
        if topic is None:
            unknown = [_rejected(partition, ErrorCode.UNKNOWN_TOPIC_ID) for partition in wanted.partitions]
            return ResponseTopicData(wanted.topic_id, unknown)
        return ResponseTopicData(wanted.topic_id, [self._alter(topic, partition) for partition in wanted.partitions])

    def _alter(self, topic: TopicImage, wanted: RequestPartitionData) -> ResponsePartitionData:
        state = topic.partitions.get(wanted.partition_index)
        if state is None:
            return _rejected(wanted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        problem = self._problem(topic, state, wanted)
        if problem is not None:
            return _rejected(wanted, problem)
        self._seen.add((topic.topic_id, wanted.partition_index))
        record = self._change(topic, state, wanted)
        if record is not None:
            self.records.append(record)
            state = state.changed_by(record)
        if state.leader != self._broker_id:  # the change completed a reassignment that removed the sender as leader
            return _rejected(wanted, ErrorCode.NEW_LEADER_ELECTED)
        return _accepted(wanted, state)

    def _change(
        self, topic: TopicImage, state: PartitionImage, wanted: RequestPartitionData
    ) -> PartitionChangeRecord | None:
        isr = tuple(member.broker_id for member in _new_isr(wanted))
        changed = replace(state, isr=isr, leader_recovery_state=wanted.leader_recovery_state)
        return plan_change(self._rules, topic, wanted.partition_index, changed)

    def _problem(self, topic: TopicImage, state: PartitionImage, wanted: RequestPartitionData) -> ErrorCode | None:
        if wanted.leader_epoch > state.leader_epoch or wanted.partition_epoch > state.partition_epoch:
            return ErrorCode.NOT_CONTROLLER  # the leader has later metadata, so this controller is no longer active
        if wanted.leader_epoch < state.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if state.leader != self._broker_id or (topic.topic_id, wanted.partition_index) in self._seen:
            return ErrorCode.INVALID_REQUEST
        if wanted.partition_epoch < state.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        return self._isr_problem(state, wanted)

    def _isr_problem(self, state: PartitionImage, wanted: RequestPartitionData) -> ErrorCode | None:
        members = _new_isr(wanted)
        isr = {member.broker_id for member in members}
        if len(isr) != len(members) or not isr <= set(state.replicas) or state.leader not in isr:
            return ErrorCode.INVALID_REQUEST
        if wanted.leader_recovery_state not in {RECOVERED, RECOVERING}:
            return ErrorCode.INVALID_REQUEST
        recovers = wanted.leader_recovery_state == RECOVERING
        if recovers and (len(isr) > 1 or state.leader_recovery_state == RECOVERED):
            return ErrorCode.INVALID_REQUEST
        return None if all(map(self._is_eligible, members)) else ErrorCode.INELIGIBLE_REPLICA

    def _is_eligible(self, member: BrokerState) -> bool:
        broker = self._image.brokers.get(member.broker_id)
        return broker is not None and broker.is_active and member.broker_epoch in {ANY_EPOCH, broker.epoch}


def _new_isr(wanted: RequestPartitionData) -> Sequence[BrokerState]:
    """Return the requested ISR; requests below version 3 have no broker epochs."""
    return wanted.new_isr_with_epochs or [BrokerState(broker_id) for broker_id in wanted.new_isr]


def _rejected(wanted: RequestPartitionData, error: ErrorCode) -> ResponsePartitionData:
    return ResponsePartitionData(wanted.partition_index, error)


def _accepted(wanted: RequestPartitionData, state: PartitionImage) -> ResponsePartitionData:
    return ResponsePartitionData(
        partition_index=wanted.partition_index,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        leader_recovery_state=state.leader_recovery_state,
        partition_epoch=state.partition_epoch,
    )
