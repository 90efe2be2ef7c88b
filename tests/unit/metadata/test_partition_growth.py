import pytest
from metadata_clusters import cluster, decided, seeded, with_topic

from sskafka.metadata import topics
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.placement import automatic_assignments
from sskafka.metadata.topics import create_partitions
from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)


def test_new_partitions_follow_the_old_ones() -> None:
    image = with_topic(cluster(3), "t", 2, 2)
    before = dict(image.topics_by_name["t"].partitions)
    request = CreatePartitionsRequest([CreatePartitionsTopic("t", 4, None)])
    response = decided(image, create_partitions(image, request, seeded()))
    states = image.topics_by_name["t"].partitions
    assert response.results[0].error_code == 0
    assert sorted(states) == [0, 1, 2, 3]
    assert {number: states[number] for number in before} == before
    assert len(states[3].replicas) == 2


def test_new_partitions_may_be_assigned() -> None:
    image = with_topic(cluster(3), "t", 1, 2)
    topic = CreatePartitionsTopic("t", 2, [CreatePartitionsAssignment([3, 2])])
    decided(image, create_partitions(image, CreatePartitionsRequest([topic]), seeded()))
    assert image.topics_by_name["t"].partitions[1].replicas == (3, 2)


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (CreatePartitionsTopic("none", 2, None), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (CreatePartitionsTopic("t", 2, None), ErrorCode.INVALID_PARTITIONS),
        (CreatePartitionsTopic("t", 1, None), ErrorCode.INVALID_PARTITIONS),
        (CreatePartitionsTopic("t", -1, None), ErrorCode.INVALID_PARTITIONS),
        (CreatePartitionsTopic("t", 2_000_000_000, None), ErrorCode.POLICY_VIOLATION),
        (CreatePartitionsTopic("t", 4, [CreatePartitionsAssignment([1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (CreatePartitionsTopic("t", 3, [CreatePartitionsAssignment([1, 2])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (CreatePartitionsTopic("t", 3, [CreatePartitionsAssignment([9])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_invalid_partition_counts_are_rejected(topic: CreatePartitionsTopic, code: ErrorCode) -> None:
    image = with_topic(cluster(2), "t", 2)
    decision = create_partitions(image, CreatePartitionsRequest([topic]), seeded())
    assert (decision.response.results[0].error_code, decision.records) == (code, [])


def test_duplicates_are_rejected_and_validate_only_writes_nothing() -> None:
    image = with_topic(cluster(), "t")
    wanted = CreatePartitionsTopic("t", 2, None)
    twice = create_partitions(image, CreatePartitionsRequest([wanted, wanted]), seeded())
    assert [result.error_code for result in twice.response.results] == [ErrorCode.INVALID_REQUEST]
    only_checked = create_partitions(image, CreatePartitionsRequest([wanted], validate_only=True), seeded())
    assert (only_checked.response.results[0].error_code, only_checked.records) == (0, [])


def test_the_partitions_of_all_topics_of_a_request_are_bounded() -> None:
    image = with_topic(with_topic(cluster(), "a"), "b")
    wanted = [CreatePartitionsTopic("a", 6000, None), CreatePartitionsTopic("b", 6000, None)]
    decision = create_partitions(image, CreatePartitionsRequest(wanted), seeded())
    codes = {result.name: result.error_code for result in decision.response.results}
    assert codes == {"a": ErrorCode.NONE, "b": ErrorCode.POLICY_VIOLATION}
    assert len(decision.records) == 5999


def test_refused_partitions_are_not_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the refused topics once took 19 ms."""
    image = with_topic(with_topic(with_topic(cluster(), "a"), "b"), "c")
    placed: list[range] = []

    def noting(image: ClusterImage, partitions: range, factor: int, start: int) -> list[tuple[int, ...]]:
        placed.append(partitions)
        return automatic_assignments(image, partitions, factor, start)

    monkeypatch.setattr(topics, "automatic_assignments", noting)
    counts = {"a": 6001, "b": 6001, "c": 4001}
    wanted = [CreatePartitionsTopic(name, count, None) for name, count in counts.items()]
    response = create_partitions(image, CreatePartitionsRequest(wanted), seeded()).response
    assert [result.error_code for result in response.results] == [0, ErrorCode.POLICY_VIOLATION, 0]
    assert placed == [range(1, 6001), range(1, 4001)]
