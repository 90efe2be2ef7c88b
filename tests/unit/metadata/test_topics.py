from collections.abc import Collection, Mapping
from typing import Any

import pytest
from metadata_clusters import SETTINGS, cluster, decided, new_topic, seeded, with_topic

from sskafka.metadata import topics
from sskafka.metadata.controller_result import ControllerResult
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.placement import automatic_assignments
from sskafka.metadata.records import ConfigRecord, PartitionRecord, TopicRecord
from sskafka.metadata.topics import create_topics, delete_topics, new_topic_id
from sskafka.model.config_description import describe_topic
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import METADATA_TOPIC_ID, ZERO_UUID
from sskafka.model.settings import Settings
from sskafka.model.settings_table import TOPIC_SETTINGS
from sskafka.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from sskafka.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState


def create(
    image: ClusterImage, *topics: CreatableTopic, settings: Settings = SETTINGS
) -> ControllerResult[CreateTopicsResponse]:
    return create_topics(image, CreateTopicsRequest(list(topics)), settings, seeded())


def result_of(image: ClusterImage, topic: CreatableTopic, settings: Settings = SETTINGS) -> CreatableTopicResult:
    (result,) = create(image, topic, settings=settings).response.topics
    return result


def assigned(name: str, *replicas: list[int], partitions: int = -1, factor: int = -1) -> CreatableTopic:
    assignments = [CreatableReplicaAssignment(index, brokers) for index, brokers in enumerate(replicas)]
    return CreatableTopic(name, partitions, factor, assignments)


def test_creating_a_topic_writes_topic_config_and_partition_records() -> None:
    decision = create(cluster(), new_topic("orders", 2, retention_ms="5000"))
    topic, config, *partitions = decision.records
    assert isinstance(topic, TopicRecord)
    assert config == ConfigRecord(2, "orders", "retention.ms", "5000")
    assert partitions == [
        PartitionRecord(
            number,
            topic.topic_id,
            [1],
            [1],
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=[bytes(15) + bytes([101])],
        )
        for number in range(2)
    ]


def test_the_response_has_id_counts_and_configs() -> None:
    image = cluster()
    result = decided(image, create(image, new_topic("orders", 2, retention_ms="5000"))).topics[0]
    assert (result.error_code, result.error_message, result.num_partitions, result.replication_factor) == (
        0,
        None,
        2,
        1,
    )
    assert result.topic_id == image.topics_by_name["orders"].topic_id
    configs = {config.name: config for config in result.configs or []}
    assert (configs["retention.ms"].value, configs["retention.ms"].config_source) == ("5000", 1)
    assert (configs["segment.bytes"].value, configs["segment.bytes"].config_source) == ("1073741824", 5)


def test_the_configs_of_the_broker_are_described_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """10,000 topics of one partition, in 150 kB, once took 2.8 s."""
    described: list[int] = []

    def noting(settings: Settings, overrides: Mapping[str, str], names: Collection[str] | None = None) -> Any:
        entries = describe_topic(settings, overrides, names)
        described.append(len(entries))
        return entries

    monkeypatch.setattr(topics, "describe_topic", noting)
    overrides = [{}, {"retention_ms": "5000"}, {}, {"internal_segment_bytes": "20"}]
    wanted = [new_topic(f"t{number}", **configs) for number, configs in enumerate(overrides)]
    results = create(cluster(), *wanted).response.topics
    assert described == [len(TOPIC_SETTINGS) - 1, 1, 1], "one setting is hidden while it is unset"
    for result, configs in zip(results, overrides, strict=True):
        own = {name.replace("_", "."): value for name, value in configs.items()}
        entries = {(entry.name, entry.value, entry.source) for entry in describe_topic(SETTINGS, own)}
        assert result.configs is not None
        assert {(config.name, config.value, config.config_source) for config in result.configs} == entries


def test_minus_one_means_the_broker_default() -> None:
    settings = Settings.resolve({"num.partitions": "3", "default.replication.factor": "2"})
    result = result_of(cluster(2), new_topic("t", -1, -1), settings)
    assert (result.num_partitions, result.replication_factor) == (3, 2)


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (new_topic("t", 0), ErrorCode.INVALID_PARTITIONS),
        (new_topic("t", -2), ErrorCode.INVALID_PARTITIONS),
        (new_topic("t", 10_001), ErrorCode.POLICY_VIOLATION),
        (new_topic("t", 2_000_000_000), ErrorCode.POLICY_VIOLATION),
        (new_topic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (new_topic("t", 1, 3), ErrorCode.INVALID_REPLICATION_FACTOR),
        (new_topic(""), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new_topic(".."), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new_topic("a/b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new_topic("x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new_topic("__cluster_metadata"), ErrorCode.INVALID_REQUEST),
        (new_topic("here"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (new_topic("a_b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new_topic("t", retention_ms="soon"), ErrorCode.INVALID_CONFIG),
        (new_topic("t", no_such="1"), ErrorCode.INVALID_CONFIG),
        (new_topic("t", retention_ms=None), ErrorCode.INVALID_CONFIG),
        (assigned("t", [1], partitions=1), ErrorCode.INVALID_REQUEST),
        (assigned("t", [1], factor=1), ErrorCode.INVALID_REQUEST),
        (assigned("t", [1, 1]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned("t", [7]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned("t", [1, 2], [1]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned("t", []), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (CreatableTopic("t", -1, -1, [CreatableReplicaAssignment(1, [1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_invalid_topics_are_rejected(topic: CreatableTopic, code: ErrorCode) -> None:
    image = with_topic(with_topic(cluster(2), "here"), "a.b")
    decision = create(image, topic)
    (result,) = decision.response.topics
    assert (result.error_code, decision.records) == (code, [])
    assert result.error_message


def test_a_manual_assignment_is_used_unchanged() -> None:
    image = cluster(3)
    decided(image, create(image, assigned("t", [3, 1], [2, 3])))
    states = image.topics_by_name["t"].partitions
    assert [(state.replicas, state.leader) for state in states.values()] == [((3, 1), 3), ((2, 3), 2)]


def test_fenced_brokers_may_be_assigned_but_are_not_in_the_isr() -> None:
    image = cluster(2)
    image.brokers[2] = cluster(2, fenced=True).brokers[2]
    decided(image, create(image, assigned("t", [2, 1])))
    state = image.topics_by_name["t"].partitions[0]
    assert (state.replicas, state.isr, state.leader) == ((2, 1), (1,), 1)
    assert result_of(image, assigned("u", [2])).error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_topics_of_a_request_are_created_independently() -> None:
    image = cluster()
    response = decided(image, create(image, new_topic("good"), new_topic("bad", 0)))
    assert [(topic.name, topic.error_code) for topic in response.topics] == [("good", 0), ("bad", 37)]
    assert list(image.topics_by_name) == ["good"]


def test_topics_of_one_request_must_not_collide_either() -> None:
    response = create(cluster(), new_topic("x.y"), new_topic("x_y")).response
    assert [topic.error_code for topic in response.topics] == [0, ErrorCode.INVALID_TOPIC_EXCEPTION]


def test_a_duplicate_topic_is_rejected_once() -> None:
    decision = create(cluster(), new_topic("t"), new_topic("t", 2))
    assert [topic.error_code for topic in decision.response.topics] == [ErrorCode.INVALID_REQUEST]
    assert not decision.records


def test_validate_only_writes_nothing() -> None:
    request = CreateTopicsRequest([new_topic("t", 2)], validate_only=True)
    decision = create_topics(cluster(), request, SETTINGS, seeded())
    assert decision.response.topics[0].num_partitions == 2
    assert decision.records == []


def test_the_partitions_of_a_request_are_limited() -> None:
    response = create(cluster(), new_topic("a", 6000), new_topic("b", 6000)).response
    assert [topic.error_code for topic in response.topics] == [0, ErrorCode.POLICY_VIOLATION]


def test_refused_topics_are_not_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    """49,990 topics with 10,000 partitions each, in a request of 0.7 MB, once took 16 minutes."""
    placed: list[range] = []

    def noting(image: ClusterImage, partitions: range, factor: int, start: int) -> list[tuple[int, ...]]:
        placed.append(partitions)
        return automatic_assignments(image, partitions, factor, start)

    monkeypatch.setattr(topics, "automatic_assignments", noting)
    response = create(cluster(), new_topic("a", 6000), new_topic("b", 6000), new_topic("c", 4000)).response
    assert [topic.error_code for topic in response.topics] == [0, ErrorCode.POLICY_VIOLATION, 0]
    assert placed == [range(6000), range(4000)]


def test_refused_manual_assignments_are_not_checked() -> None:
    too_many = assigned("b", *[[9]] * 5000)
    response = create(cluster(), new_topic("a", 6000), too_many).response
    assert [topic.error_code for topic in response.topics] == [0, ErrorCode.POLICY_VIOLATION]


def test_reserved_ids_and_ids_with_a_leading_dash_are_not_used() -> None:
    offered = iter([ZERO_UUID, METADATA_TOPIC_ID, b"\xf8" + bytes(15), bytes(range(16))])
    assert new_topic_id(ClusterImage(), lambda _: next(offered)) == bytes(range(16))


def delete(image: ClusterImage, *topics: DeleteTopicState, settings: Settings = SETTINGS) -> list[int]:
    response = decided(image, delete_topics(image, DeleteTopicsRequest(list(topics)), settings))
    return [result.error_code for result in response.responses]


def test_topics_are_deleted_by_name_and_by_id() -> None:
    image = with_topic(with_topic(cluster(), "a"), "b")
    topic_id = image.topics_by_name["b"].topic_id
    assert delete(image, DeleteTopicState("a"), DeleteTopicState(None, topic_id)) == [0, 0]
    assert not image.topics_by_name


def test_older_clients_send_only_names() -> None:
    image = with_topic(cluster(), "a")
    response = decided(image, delete_topics(image, DeleteTopicsRequest(topic_names=["a", "b"]), SETTINGS))
    assert [(result.name, result.error_code) for result in response.responses] == [("a", 0), ("b", 3)]


def test_invalid_deletions_are_rejected() -> None:
    image = with_topic(cluster(), "a")
    topic_id = image.topics_by_name["a"].topic_id
    assert delete(image, DeleteTopicState("b")) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert delete(image, DeleteTopicState(None, bytes(range(16)))) == [ErrorCode.UNKNOWN_TOPIC_ID]
    assert delete(image, DeleteTopicState("a", topic_id)) == [ErrorCode.INVALID_REQUEST]
    assert delete(image, DeleteTopicState(None)) == [ErrorCode.INVALID_REQUEST]
    assert delete(image, DeleteTopicState("a"), DeleteTopicState(None, topic_id)) == [ErrorCode.INVALID_REQUEST] * 2
    forbidden = Settings.resolve({"delete.topic.enable": "false"})
    assert delete(image, DeleteTopicState("a"), settings=forbidden) == [ErrorCode.TOPIC_DELETION_DISABLED]
    assert list(image.topics_by_name) == ["a"]
