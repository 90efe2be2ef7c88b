import pytest
from metadata_clusters import SETTINGS, decided
from partition_changes import altered, fence, isr_request, partition, replicated, set_isr, unfence

from sskafka.metadata.image import ClusterImage
from sskafka.metadata.partitions.image import PartitionImage
from sskafka.metadata.reassignments import alter_partition_reassignments, list_partition_reassignments
from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopic,
)
from sskafka.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)


def on_three_of_five(*, elr: bool = True, **configs: str) -> ClusterImage:
    """Partition t-0 on brokers 1, 2 and 3 of five."""
    image = replicated(5, elr=elr, **configs)
    state = partition(image)
    on_three = PartitionImage((1, 2, 3), (1, 2, 3), 1, 0, 0, state.directories[:3])
    image.topics_by_name["t"].partitions[0] = on_three
    return image


def move(
    image: ClusterImage, replicas: list[int] | None, *, may_change_factor: bool = True
) -> ReassignablePartitionResponse:
    topics = [ReassignableTopic("t", [ReassignablePartition(0, replicas)])]
    request = AlterPartitionReassignmentsRequest(allow_replication_factor_change=may_change_factor, topics=topics)
    response = decided(image, alter_partition_reassignments(image, request, SETTINGS))
    return response.responses[0].partitions[0]


def moved(image: ClusterImage, replicas: list[int] | None) -> PartitionImage:
    answer = move(image, replicas)
    assert (answer.error_code, answer.error_message) == (0, None)
    return partition(image)


def test_a_reassignment_completes_when_the_new_replica_is_in_sync() -> None:
    image = on_three_of_five()
    state = moved(image, [4, 2, 3])
    assert (state.replicas, state.adding_replicas, state.removing_replicas) == ((4, 2, 3, 1), (4,), (1,))
    assert (state.isr, state.leader, state.leader_epoch) == ((1, 2, 3), 1, 0)
    assert state.directory_of(4) == image.brokers[4].directories[0]
    answer = altered(image, isr_request(image, [1, 2, 3, 4]))
    assert answer.error_code == ErrorCode.NEW_LEADER_ELECTED
    state = partition(image)
    assert (state.replicas, state.isr, state.adding_replicas, state.removing_replicas) == ((4, 2, 3), (2, 3, 4), (), ())
    assert (state.leader, state.leader_epoch, len(state.directories)) == (4, 1, 3)


def test_removing_a_replica_bumps_the_leader_epoch() -> None:
    image = on_three_of_five()
    moved(image, [1, 2, 4])
    answer = altered(image, isr_request(image, [1, 2, 3, 4]))
    assert (answer.error_code, answer.leader_epoch, answer.isr) == (0, 1, [1, 2, 4])


def test_reordering_replicas_changes_the_preferred_leader_at_once() -> None:
    state = moved(on_three_of_five(), [3, 1, 2])
    assert (state.replicas, state.leader, state.is_reassigning, state.leader_epoch) == ((3, 1, 2), 1, False, 0)


def test_a_smaller_replication_factor_is_applied_at_once() -> None:
    state = moved(on_three_of_five(), [2])
    assert (state.replicas, state.isr, state.leader, state.is_reassigning) == ((2,), (2,), 2, False)


def test_acknowledged_records_stay_on_min_insync_replicas() -> None:
    image = on_three_of_five(min_insync_replicas="2")
    set_isr(image, 1, 2)
    state = moved(image, [4, 3, 1])
    set_isr(image, 1, 2, 4)
    state = partition(image)
    assert (state.replicas, state.isr) == ((4, 3, 1), (1, 4))
    image = on_three_of_five(min_insync_replicas="2")
    set_isr(image, 1)
    moved(image, [4, 2, 3])
    set_isr(image, 1, 4)
    assert partition(image).removing_replicas == (1,)
    assert altered(image, isr_request(image, [1, 4, 3])).error_code == ErrorCode.NEW_LEADER_ELECTED
    assert (partition(image).replicas, partition(image).isr) == ((4, 2, 3), (4, 3))


def test_the_last_in_sync_replica_is_not_removed() -> None:
    image = on_three_of_five()
    set_isr(image, 1)
    assert moved(image, [2, 3]).removing_replicas == (1,)
    assert altered(image, isr_request(image, [1, 2])).error_code == ErrorCode.NEW_LEADER_ELECTED
    assert (partition(image).replicas, partition(image).isr, partition(image).leader) == ((2, 3), (2,), 2)


def test_the_death_of_a_removed_broker_completes_the_reassignment() -> None:
    image = on_three_of_five()
    moved(image, [4, 2, 3])
    fence(image, 1)
    assert partition(image).leader == 2
    set_isr(image, 2, 3, 4)
    assert (partition(image).replicas, partition(image).is_reassigning) == ((4, 2, 3), False)


def test_a_cancelled_reassignment_restores_the_replicas() -> None:
    image = on_three_of_five()
    moved(image, [4, 5, 3])
    set_isr(image, 1, 2, 3, 4)
    state = moved(image, None)
    assert (sorted(state.replicas), sorted(state.isr), state.is_reassigning) == ([1, 2, 3], [1, 2, 3], False)
    assert move(image, None).error_code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def test_a_reassignment_is_not_cancelled_onto_lagging_replicas() -> None:
    for unclean, error in (("false", ErrorCode.INVALID_REPLICA_ASSIGNMENT), ("true", ErrorCode.NONE)):
        image = on_three_of_five(unclean_leader_election_enable=unclean)
        moved(image, [4, 5, 3])
        set_isr(image, 1, 4)
        fence(image, 1)
        assert partition(image).isr == (4,)
        assert move(image, None).error_code == error
    state = partition(image)
    assert (sorted(state.replicas), state.leader, state.leader_recovery_state) == ([1, 2, 3], 3, 1)


def test_a_new_target_replaces_the_old_one() -> None:
    image = on_three_of_five()
    moved(image, [4, 2, 3])
    state = moved(image, [5, 2, 3])
    assert (state.replicas, state.adding_replicas, state.removing_replicas) == ((5, 2, 3, 1), (5,), (1,))
    state = moved(image, [4, 2, 3])
    assert (state.replicas, state.adding_replicas, state.removing_replicas) == ((4, 2, 3, 1), (4,), (1,))


def test_added_replicas_that_are_in_sync_are_removed_last() -> None:
    image = on_three_of_five(min_insync_replicas="3")
    moved(image, [4, 5, 3])
    set_isr(image, 1, 2, 4)
    state = moved(image, [5, 2, 3])
    assert (state.replicas, state.adding_replicas, state.removing_replicas) == ((5, 2, 3, 4, 1), (5,), (4, 1))


def test_a_replica_that_was_to_be_added_must_still_catch_up() -> None:
    image = on_three_of_five()
    moved(image, [1, 2, 3, 4])
    state = moved(image, [2, 3, 4])
    assert (state.adding_replicas, state.removing_replicas) == ((4,), (1,))


@pytest.mark.parametrize("replicas", [[], [1, 1], [1, 9], [-3]])
def test_invalid_targets_are_rejected(replicas: list[int]) -> None:
    assert move(on_three_of_five(), replicas).error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_change_of_the_replication_factor_can_be_forbidden() -> None:
    image = on_three_of_five()
    assert move(image, [1, 2], may_change_factor=False).error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert move(image, [1, 2, 4], may_change_factor=False).error_code == 0
    assert move(image, [1, 2, 5], may_change_factor=False).error_code == 0


def test_unknown_and_repeated_partitions() -> None:
    image = on_three_of_five()
    partitions = [ReassignablePartition(0, [4]), ReassignablePartition(0, [5]), ReassignablePartition(7, [1])]
    topics = [ReassignableTopic("t", partitions), ReassignableTopic("none", partitions[:1])]
    response = decided(
        image, alter_partition_reassignments(image, AlterPartitionReassignmentsRequest(topics=topics), SETTINGS)
    )
    codes = [[answer.error_code for answer in topic.partitions] for topic in response.responses]
    assert codes == [[0, ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION], [3]]


def test_a_partition_without_a_leader_is_moved_later() -> None:
    image = on_three_of_five()
    set_isr(image, 1)
    fence(image, 1)
    state = moved(image, [4, 2])
    assert (state.leader, state.adding_replicas, state.eligible_leader_replicas) == (-1, (4,), (1,))
    unfence(image, 1)
    assert partition(image).leader == 1
    altered(image, isr_request(image, [1, 4]))
    assert (partition(image).replicas, partition(image).leader) == ((4, 2), 4)


def test_ongoing_reassignments_are_listed() -> None:
    image = on_three_of_five()
    assert list_partition_reassignments(image, ListPartitionReassignmentsRequest()).topics == []
    moved(image, [4, 2, 3])
    for topics in (
        None,
        [ListPartitionReassignmentsTopics("none", [0]), ListPartitionReassignmentsTopics("t", [0, 5])],
    ):
        (topic,) = list_partition_reassignments(image, ListPartitionReassignmentsRequest(topics=topics)).topics
        (ongoing,) = topic.partitions
        assert (topic.name, ongoing.replicas) == ("t", [4, 2, 3, 1])
        assert (ongoing.adding_replicas, ongoing.removing_replicas) == ([4], [1])
