"""CreatePartitions: add partitions. Existing ones do not change, but keys map to other partitions afterwards."""

from collections import Counter

from sskafka.metadata.assignments import automatic_assignments, check_assignment, partition_record
from sskafka.metadata.controller_result import ControllerResult, RandomBytes
from sskafka.metadata.image import ClusterImage, TopicImage
from sskafka.metadata.records import MetadataRecord
from sskafka.metadata.topics import PARTITIONS_PER_REQUEST_MAX, TOO_MANY_PARTITIONS
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


def create_partitions(
    image: ClusterImage, request: CreatePartitionsRequest, random: RandomBytes
) -> ControllerResult[CreatePartitionsResponse]:
    names = Counter(topic.name for topic in request.topics)
    records: list[MetadataRecord] = []
    results: list[CreatePartitionsTopicResult] = []
    for wanted in {topic.name: topic for topic in request.topics}.values():
        try:
            if names[wanted.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            records += _add_partitions(image, wanted, random)
        except KafkaError as error:
            results.append(CreatePartitionsTopicResult(wanted.name, error.code, error.message or None))
        else:
            results.append(CreatePartitionsTopicResult(wanted.name))
    if request.validate_only:
        records = []
    return ControllerResult(records, CreatePartitionsResponse(results=results))


def _add_partitions(image: ClusterImage, wanted: CreatePartitionsTopic, random: RandomBytes) -> list[MetadataRecord]:
    topic = image.topics_by_name.get(wanted.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    _check_count(topic, wanted.count)
    added = range(len(topic.partitions), wanted.count)
    assignments = _assignments(image, topic, wanted, added, random)
    placed = zip(added, assignments, strict=True)
    return [partition_record(image, topic.topic_id, number, replicas) for number, replicas in placed]


def _check_count(topic: TopicImage, count: int) -> None:
    current = len(topic.partitions)
    if count == current:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {current} partition(s).")
    if count < current:
        message = f"The topic {topic.name} currently has {current} partition(s); {count} would not be an increase."
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, message)
    if count - current > PARTITIONS_PER_REQUEST_MAX:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, TOO_MANY_PARTITIONS)


def _assignments(
    image: ClusterImage, topic: TopicImage, wanted: CreatePartitionsTopic, added: range, random: RandomBytes
) -> list[tuple[int, ...]]:
    replication_factor = len(topic.partitions[0].replicas)
    if wanted.assignments is None:
        start = int.from_bytes(random(2), "big")
        return automatic_assignments(image, added, replication_factor, start)
    if len(wanted.assignments) != len(added):
        message = (
            f"Attempted to add {len(added)} additional partition(s), but only {len(wanted.assignments)} "
            "assignment(s) were specified."
        )
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    return [check_assignment(image, item.broker_ids, replication_factor) for item in wanted.assignments]
