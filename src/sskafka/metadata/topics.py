"""Create and delete topics."""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property

from sskafka.metadata.controller_result import ControllerResult, RandomBytes
from sskafka.metadata.effective_settings import effective_settings
from sskafka.metadata.image import ClusterImage, TopicImage
from sskafka.metadata.placement import automatic_assignments, check_assignment, partition_record
from sskafka.metadata.records import RESOURCE_TOPIC, ConfigRecord, MetadataRecord, RemoveTopicRecord, TopicRecord
from sskafka.model.config_description import ConfigEntry, describe_topic
from sskafka.model.error_texts import error_text
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import (
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    TOPIC_NAME_LENGTH_MAX,
    ZERO_UUID,
    Uuid,
    topic_name_problem,
    uuid_text,
)
from sskafka.model.setting import SettingError
from sskafka.model.settings import Settings, validate_topic_configs
from sskafka.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from sskafka.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from sskafka.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

PARTITIONS_PER_REQUEST_MAX = 10_000
TOO_MANY_PARTITIONS = "Excessively large number of partitions per request."
USE_DEFAULT = -1


def create_topics(
    image: ClusterImage, request: CreateTopicsRequest, settings: Settings, random: RandomBytes
) -> ControllerResult[CreateTopicsResponse]:
    """Create each topic independently of the others. `settings` are the broker's static settings."""
    settings = effective_settings(settings, image)
    names = Counter(topic.name for topic in request.topics)
    records: list[MetadataRecord] = []
    results: list[CreatableTopicResult] = []
    draft = _Draft(image, settings, random)
    for topic in _once_by_name(request.topics):
        try:
            if names[topic.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            created, result = draft.create(topic)
        except KafkaError as error:
            results.append(CreatableTopicResult(topic.name, error_code=error.code, error_message=str(error)))
        else:
            records += created
            results.append(result)
    if request.validate_only:
        records = []
    return ControllerResult(records, CreateTopicsResponse(topics=results))


def delete_topics(
    image: ClusterImage, request: DeleteTopicsRequest, settings: Settings
) -> ControllerResult[DeleteTopicsResponse]:
    records: list[MetadataRecord] = []
    results: list[DeletableTopicResult] = []
    wanted = request.topics or [DeleteTopicState(name=name) for name in request.topic_names]
    repetitions = _Repetitions(wanted)
    for state in {(state.name, state.topic_id): state for state in wanted}.values():
        try:
            topic = _deletable(image, state, repetitions, settings)
        except KafkaError as error:
            results.append(DeletableTopicResult(state.name, state.topic_id, error.code, str(error)))
        else:
            records.append(RemoveTopicRecord(topic.topic_id))
            results.append(DeletableTopicResult(topic.name, topic.topic_id))
    return ControllerResult(records, DeleteTopicsResponse(responses=results))


def new_topic_id(image: ClusterImage, random: RandomBytes) -> Uuid:
    """Return a random id that is not reserved and does not start with a dash, which would look like an option."""
    while True:
        topic_id = random(16)
        is_taken = topic_id in {ZERO_UUID, METADATA_TOPIC_ID} or topic_id in image.topics_by_id
        if not is_taken and not uuid_text(topic_id).startswith("-"):
            return topic_id


class _Draft:
    """The topics of one request; later topics must not collide with earlier ones either."""

    def __init__(self, image: ClusterImage, settings: Settings, random: RandomBytes) -> None:
        self._image = image
        self._settings = settings
        self._random = random
        self._partitions = 0
        self._flat_names: dict[str, str] | None = None
        """Existing topics by their names in metrics; computed when the first name that could collide is seen."""
        self._new_names: dict[str, str] = {}

    def create(self, topic: CreatableTopic) -> tuple[list[MetadataRecord], CreatableTopicResult]:
        self._check_name(topic.name)
        overrides = _checked_configs(topic)
        assignments = self._assignments(topic, self._checked_count(topic))
        self._partitions += len(assignments)
        self._new_names[_flat(topic.name)] = topic.name
        topic_id = new_topic_id(self._image, self._random)
        records = list(self._records(topic.name, topic_id, overrides, assignments))
        return records, self._result(topic.name, topic_id, overrides, assignments)

    def _check_name(self, name: str) -> None:
        if name in self._image.topics_by_name:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        if name == METADATA_TOPIC:
            message = f"Creation of internal topic {METADATA_TOPIC} is prohibited."
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)
        problem = _name_problem(name) or self._collision(name)
        if problem is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)

    def _collision(self, name: str) -> str | None:
        """Return the error if metric names, in which dots become underscores, would be the same as another topic's."""
        if "." not in name and "_" not in name:
            return None
        if self._flat_names is None:
            self._flat_names = {_flat(other): other for other in self._image.topics_by_name}
        other = self._flat_names.get(_flat(name)) or self._new_names.get(_flat(name))
        return None if other is None else f"Topic '{name}' collides with existing topic: {other}"

    def _checked_count(self, topic: CreatableTopic) -> int:
        """Return the number of partitions to create, before any is placed: a few bytes may ask for 10,000."""
        count = len(topic.assignments) or self._default(topic.num_partitions, "num.partitions")
        if count <= 0:
            message = "Number of partitions was set to an invalid non-positive value."
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, message)
        _check_total(self._partitions + count)
        return count

    def _assignments(self, topic: CreatableTopic, count: int) -> list[tuple[int, ...]]:
        if topic.assignments:
            return self._manual_assignments(topic)
        replication_factor = self._default(topic.replication_factor, "default.replication.factor")
        if replication_factor <= 0:
            message = "Replication factor must be larger than 0, or -1 to use the default value."
            raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, message)
        start = int.from_bytes(self._random(2), "big")
        return automatic_assignments(self._image, range(count), replication_factor, start)

    def _manual_assignments(self, topic: CreatableTopic) -> list[tuple[int, ...]]:
        if topic.replication_factor != USE_DEFAULT:
            message = "A manual partition assignment was specified, but replication factor was not set to -1."
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)
        if topic.num_partitions != USE_DEFAULT:
            message = "A manual partition assignment was specified, but numPartitions was not set to -1."
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)
        assigned: dict[int, list[int]] = {}
        for item in topic.assignments:
            if item.partition_index in assigned:
                message = f"Found multiple manual partition assignments for partition {item.partition_index}"
                raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
            assigned[item.partition_index] = item.broker_ids
        if set(assigned) != set(range(len(assigned))):
            message = "partitions should be a consecutive 0-based integer sequence"
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
        replication_factor = len(assigned[0])
        return [check_assignment(self._image, assigned[index], replication_factor) for index in range(len(assigned))]

    def _default(self, requested: int, setting: str) -> int:
        return requested if requested != USE_DEFAULT else self._settings.integer(setting)

    def _records(
        self, name: str, topic_id: Uuid, overrides: Mapping[str, str], assignments: list[tuple[int, ...]]
    ) -> Iterator[MetadataRecord]:
        yield TopicRecord(name, topic_id)
        for key, value in overrides.items():
            yield ConfigRecord(RESOURCE_TOPIC, name, key, value)
        for partition, replicas in enumerate(assignments):
            yield partition_record(self._image, topic_id, partition, replicas)

    def _result(
        self, name: str, topic_id: Uuid, overrides: Mapping[str, str], assignments: list[tuple[int, ...]]
    ) -> CreatableTopicResult:
        return CreatableTopicResult(
            name=name,
            topic_id=topic_id,
            error_message=None,
            num_partitions=len(assignments),
            replication_factor=len(assignments[0]),
            configs=self._described(overrides),
        )

    @cached_property
    def _inherited(self) -> dict[str, CreatableTopicConfigs]:
        """The configs of a topic without overrides, described once for all topics of the request."""
        return _by_name(describe_topic(self._settings, {}))

    def _described(self, overrides: Mapping[str, str]) -> list[CreatableTopicConfigs]:
        own = _by_name(describe_topic(self._settings, overrides, overrides)) if overrides else {}
        return list((self._inherited | own).values())


def _by_name(entries: list[ConfigEntry]) -> dict[str, CreatableTopicConfigs]:
    return {
        entry.name: CreatableTopicConfigs(entry.name, entry.value, entry.read_only, entry.source, entry.sensitive)
        for entry in entries
    }


def _flat(name: str) -> str:
    return name.replace(".", "_")


def _name_problem(name: str) -> str | None:
    """Return why `name` is not a valid topic name, with Kafka's message, or None."""
    if topic_name_problem(name) is None:
        return None
    if not name:
        reason = "the empty string is not allowed"
    elif name in {".", ".."}:
        reason = f"'{name}' is not allowed"
    elif len(name) > TOPIC_NAME_LENGTH_MAX:
        reason = f"the length of '{name}' is longer than the max allowed length {TOPIC_NAME_LENGTH_MAX}"
    else:
        reason = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return f"Topic name is invalid: {reason}"


def _once_by_name(topics: list[CreatableTopic]) -> list[CreatableTopic]:
    return list({topic.name: topic for topic in topics}.values())


def _checked_configs(topic: CreatableTopic) -> dict[str, str]:
    configs = {config.name: config.value for config in topic.configs}
    try:
        validate_topic_configs(configs)
    except SettingError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, error.kafka_text) from error
    return {name: value for name, value in configs.items() if value is not None}


class _Repetitions:
    """How often a DeleteTopics request names its topics."""

    def __init__(self, wanted: list[DeleteTopicState]) -> None:
        self._states = Counter((state.name, state.topic_id) for state in wanted)
        self._names = Counter(state.name for state in wanted)
        self._ids = Counter(state.topic_id for state in wanted)

    def has(self, state: DeleteTopicState) -> bool:
        return self._states[state.name, state.topic_id] > 1

    def names_and_identifies(self, topic: TopicImage) -> bool:
        return self._names[topic.name] + self._ids[topic.topic_id] > 1


def _deletable(
    image: ClusterImage, state: DeleteTopicState, repetitions: _Repetitions, settings: Settings
) -> TopicImage:
    if not settings["delete.topic.enable"]:
        raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
    if state.name is None and state.topic_id == ZERO_UUID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if state.name is not None and state.topic_id != ZERO_UUID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if repetitions.has(state):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Duplicate topic {'id' if state.name is None else 'name'}.")
    topic = image.topics_by_id.get(state.topic_id) if state.name is None else image.topics_by_name.get(state.name)
    if topic is None:
        unknown = ErrorCode.UNKNOWN_TOPIC_ID if state.name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        raise KafkaError(unknown, error_text(unknown))
    if repetitions.names_and_identifies(topic):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The provided topic name maps to an ID that was already supplied.")
    return topic


def create_partitions(
    image: ClusterImage, request: CreatePartitionsRequest, random: RandomBytes
) -> ControllerResult[CreatePartitionsResponse]:
    """Add partitions to topics. Existing partitions do not change, but keys map to other partitions afterwards."""
    names = Counter(topic.name for topic in request.topics)
    records: list[MetadataRecord] = []
    results: list[CreatePartitionsTopicResult] = []
    for wanted in {topic.name: topic for topic in request.topics}.values():
        try:
            if names[wanted.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            records += _add_partitions(image, wanted, len(records), random)
        except KafkaError as error:
            results.append(CreatePartitionsTopicResult(wanted.name, error.code, error.message or None))
        else:
            results.append(CreatePartitionsTopicResult(wanted.name))
    if request.validate_only:
        records = []
    return ControllerResult(records, CreatePartitionsResponse(results=results))


def _add_partitions(
    image: ClusterImage, wanted: CreatePartitionsTopic, added_before: int, random: RandomBytes
) -> list[MetadataRecord]:
    """Return the records of new partitions. `added_before`: partitions that the request adds to other topics."""
    topic = image.topics_by_name.get(wanted.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    _check_count(topic, wanted.count, added_before)
    added = range(len(topic.partitions), wanted.count)
    assignments = _assignments(image, topic, wanted, added, random)
    placed = zip(added, assignments, strict=True)
    return [partition_record(image, topic.topic_id, number, replicas) for number, replicas in placed]


def _check_count(topic: TopicImage, count: int, added_before: int) -> None:
    current = len(topic.partitions)
    if count == current:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {current} partition(s).")
    if count < current:
        message = f"The topic {topic.name} currently has {current} partition(s); {count} would not be an increase."
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, message)
    _check_total(added_before + count - current)


def _check_total(partitions: int) -> None:
    if partitions > PARTITIONS_PER_REQUEST_MAX:
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
