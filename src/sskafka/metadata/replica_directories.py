"""Log directories of replicas, as reported by brokers (AssignReplicasToDirs), and the effects of failed directories.

The replicas in a failed directory are removed from their ISRs. When the broker creates them again in another directory,
they start empty: until they have caught up, they are neither in the ISR nor eligible leaders.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

from sskafka.metadata.brokers.registration import BrokerRegistration
from sskafka.metadata.controller_result import ControllerResult
from sskafka.metadata.election_rules import ElectionRules
from sskafka.metadata.image import ClusterImage, TopicImage
from sskafka.metadata.partitions.change import ALL_RELIABLE, UnreliableLogs, plan_change, without
from sskafka.metadata.records import BrokerRegistrationChangeRecord, MetadataRecord, PartitionChangeRecord
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import Uuid
from sskafka.model.settings import Settings
from sskafka.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    RequestTopicData,
    ResponseDirectoryData,
    ResponsePartitionData,
    ResponseTopicData,
)


def assign_replicas_to_dirs(
    image: ClusterImage, request: AssignReplicasToDirsRequest, settings: Settings
) -> ControllerResult[AssignReplicasToDirsResponse]:
    broker = image.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        return ControllerResult((), AssignReplicasToDirsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    draft = _Draft(broker, ElectionRules(image, settings))
    directories = [
        ResponseDirectoryData(wanted.id, [draft.assign_topic(wanted.id, topic) for topic in wanted.topics])
        for wanted in request.directories
    ]
    return ControllerResult(draft.records, AssignReplicasToDirsResponse(directories=directories))


def changes_when_directories_fail(
    image: ClusterImage, broker: BrokerRegistration, failed: Collection[Uuid], settings: Settings
) -> Iterator[MetadataRecord]:
    """Return the changes after directories failed; the broker continues with the remaining ones."""
    left = [directory for directory in broker.directories if directory not in failed]
    if len(left) == len(broker.directories) or not left:
        return
    yield BrokerRegistrationChangeRecord(broker.id, broker.epoch, log_dirs=left)
    rules = ElectionRules(image, settings, stopping=(broker.id,))
    for topic, number, state in image.partitions():
        if broker.id in state.isr and state.directory_of(broker.id) in failed:
            wanted = replace(state, isr=without(state.isr, (broker.id,)))
            record = plan_change(rules, topic, number, wanted)
            if record is not None:
                yield record


class _Draft:
    """The assignments of one request; each replica may occur only once."""

    def __init__(self, broker: BrokerRegistration, rules: ElectionRules) -> None:
        self.records: list[MetadataRecord] = []
        self._broker = broker
        self._rules = rules
        self._seen: set[tuple[Uuid, int]] = set()

    def assign_topic(self, directory: Uuid, wanted: RequestTopicData) -> ResponseTopicData:
        topic = self._rules.image.topics_by_id.get(wanted.topic_id)
        numbers = [partition.partition_index for partition in wanted.partitions]
        answers = [ResponsePartitionData(number, self._assign(directory, topic, number)) for number in numbers]
        return ResponseTopicData(wanted.topic_id, answers)

    def _assign(self, directory: Uuid, topic: TopicImage | None, number: int) -> ErrorCode:
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if number not in topic.partitions:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self._broker.id not in topic.partitions[number].replicas:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if (topic.topic_id, number) in self._seen:
            return ErrorCode.INVALID_REQUEST
        self._seen.add((topic.topic_id, number))
        record = self._change(directory, topic, number)
        if record is not None:
            self.records.append(record)
        return ErrorCode.NONE

    def _change(self, directory: Uuid, topic: TopicImage, number: int) -> PartitionChangeRecord | None:
        state = topic.partitions[number]
        index = state.replicas.index(self._broker.id)
        was_there = self._broker.has_directory(state.directories[index])
        if not was_there and not self._rules.keeps_eligible_leaders and state.isr == (self._broker.id,):
            return None  # It must stay in the ISR; the missing directory keeps it from leading.
        directories = (*state.directories[:index], directory, *state.directories[index + 1 :])
        isr = state.isr
        if not was_there or not self._broker.has_directory(directory):
            isr = without(isr, (self._broker.id,))
        unreliable = ALL_RELIABLE if was_there else UnreliableLogs(empty=(self._broker.id,))
        return plan_change(
            self._rules, topic, number, replace(state, directories=directories, isr=isr), unreliable=unreliable
        )
