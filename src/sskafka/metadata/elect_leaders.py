"""ElectLeaders: elect preferred leaders, or any replica if no other can lead (unclean), at a client's request."""

from collections.abc import Iterable, Iterator
from enum import IntEnum

from sskafka.metadata.controller_result import ControllerResult
from sskafka.metadata.election_rules import ElectionRules
from sskafka.metadata.image import ClusterImage, TopicImage
from sskafka.metadata.partitions.change import Election, plan_change
from sskafka.metadata.partitions.image import PartitionImage
from sskafka.metadata.records import MetadataRecord, PartitionChangeRecord
from sskafka.model.error_texts import error_text
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.settings import Settings
from sskafka.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)

ELECTIONS_MAX = 1000
"""Maximum per decision; after a large failure a cluster is rebalanced in several steps."""


class ElectionType(IntEnum):
    PREFERRED = 0
    UNCLEAN = 1


def elect_leaders(
    image: ClusterImage, request: ElectLeadersRequest, settings: Settings
) -> ControllerResult[ElectLeadersResponse]:
    """Elect leaders. If the list of topics is null, try all partitions and omit those that need no election.

    An empty list elects nothing; as in Apache Kafka, the election type is then not checked."""
    if request.topic_partitions == []:
        return ControllerResult((), ElectLeadersResponse())
    if request.election_type not in set(ElectionType):
        return ControllerResult((), _refuse_type(request))
    rules = ElectionRules(image, settings)
    records: list[MetadataRecord] = []
    results = []
    for wanted in _wanted(image, request):
        outcomes = [_elect(rules, wanted.topic, number, request.election_type, records) for number in wanted.partitions]
        if request.topic_partitions is None:
            outcomes = [outcome for outcome in outcomes if outcome.error_code != ErrorCode.ELECTION_NOT_NEEDED]
        if outcomes or request.topic_partitions is None:
            results.append(ReplicaElectionResult(wanted.topic, outcomes))
    return ControllerResult(records, ElectLeadersResponse(replica_election_results=results))


def _refuse_type(request: ElectLeadersRequest) -> ElectLeadersResponse:
    message = f"unknown election type {request.election_type}"
    return ElectLeadersResponse(
        error_code=ErrorCode.INVALID_REQUEST,
        replica_election_results=[
            ReplicaElectionResult(
                wanted.topic,
                [PartitionResult(number, ErrorCode.INVALID_REQUEST, message) for number in wanted.partitions],
            )
            for wanted in request.topic_partitions or ()
        ],
    )


def _wanted(image: ClusterImage, request: ElectLeadersRequest) -> Iterable[TopicPartitions]:
    if request.topic_partitions is None:
        return [TopicPartitions(topic.name, sorted(topic.partitions)) for topic in image.topics_by_name.values()]
    once: dict[str, dict[int, None]] = {}
    for item in request.topic_partitions:
        once.setdefault(item.topic, {}).update(dict.fromkeys(item.partitions))
    return [TopicPartitions(topic, list(numbers)) for topic, numbers in once.items()]


def _elect(
    rules: ElectionRules, topic_name: str, number: int, election_type: int, records: list[MetadataRecord]
) -> PartitionResult:
    topic = rules.image.topics_by_name.get(topic_name)
    try:
        if topic is None or number not in topic.partitions:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _unknown_text(topic, topic_name))
        elect = preferred_leader_change if election_type == ElectionType.PREFERRED else _unclean_leader_change
        records.append(elect(rules, topic, number))
    except KafkaError as error:
        return PartitionResult(number, error.code, str(error))
    return PartitionResult(number, error_message=None)


def _unknown_text(topic: TopicImage | None, topic_name: str) -> str:
    return f"No such topic as {topic_name}" if topic is None else error_text(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def preferred_leader_change(rules: ElectionRules, topic: TopicImage, number: int) -> PartitionChangeRecord:
    """Return the change to the preferred leader; raise KafkaError if it already leads or cannot lead."""
    state = topic.partitions[number]
    if state.leader == state.preferred_leader:
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, error_text(ErrorCode.ELECTION_NOT_NEEDED))
    record = None
    if rules.can_lead(state, state.preferred_leader):
        record = plan_change(rules, topic, number, state, election=Election.PREFERRED)
    if record is None or record.leader != state.preferred_leader:
        message = f"the preferred replica {state.preferred_leader} is not available or not in the ISR"
        raise KafkaError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, message)
    return record


def _unclean_leader_change(rules: ElectionRules, topic: TopicImage, number: int) -> PartitionChangeRecord:
    state: PartitionImage = topic.partitions[number]
    if state.has_leader:
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, error_text(ErrorCode.ELECTION_NOT_NEEDED))
    record = plan_change(rules, topic, number, state, election=Election.UNCLEAN)
    if record is None:
        message = f"none of the replicas {list(state.replicas)} is available"
        raise KafkaError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, message)
    return record


def plan_leader_rebalance(
    image: ClusterImage, settings: Settings, *, elections_max: int = ELECTIONS_MAX
) -> ControllerResult[bool]:
    """Return elections of preferred leaders; the response says whether more elections may follow at once.

    When brokers stop and return, leadership moves away from preferred replicas. Runs every
    leader.imbalance.check.interval.seconds if auto.leader.rebalance.enable is true. As in Kafka's KRaft controller,
    every partition whose preferred replica can lead is moved; there is no minimum imbalance."""
    if not settings["auto.leader.rebalance.enable"]:
        return ControllerResult((), False)
    rules = ElectionRules(image, settings)
    records: list[MetadataRecord] = []
    for topic, number in _not_led_by_preferred(image):
        if len(records) == elections_max:
            return ControllerResult(records, True)
        try:
            records.append(preferred_leader_change(rules, topic, number))
        except KafkaError:
            continue  # the preferred replica is down or not in the ISR: try again next time
    return ControllerResult(records, False)


def _not_led_by_preferred(image: ClusterImage) -> Iterator[tuple[TopicImage, int]]:
    for topic, number, state in image.partitions():
        if state.leader != state.preferred_leader and image.is_active(state.preferred_leader):
            yield topic, number
