import pytest
from metadata_clusters import SETTINGS, decided, replayed
from partition_changes import altered, fence, isr_request, partition, replicated, restart, set_isr, unfence

from sskafka.metadata.alter_partition import alter_partition
from sskafka.metadata.brokers.lifecycle import begin_controlled_shutdown
from sskafka.metadata.records import PartitionChangeRecord
from sskafka.model.errors import ErrorCode


def test_an_isr_shrinks_and_grows_without_a_new_leader_epoch() -> None:
    image = replicated()
    answer = altered(image, isr_request(image, [1, 2]))
    assert (answer.error_code, answer.isr, answer.leader_id) == (0, [1, 2], 1)
    assert (answer.leader_epoch, answer.partition_epoch) == (0, 1)
    set_isr(image, 1, 2, 3)
    state = partition(image)
    assert (state.isr, state.leader, state.leader_epoch, state.partition_epoch) == ((1, 2, 3), 1, 0, 2)


def test_a_request_without_changes_writes_no_records() -> None:
    image = replicated()
    decision = alter_partition(image, isr_request(image, [1, 2, 3]), SETTINGS)
    assert list(decision.records) == []
    answer = decision.response.topics[0].partitions[0]
    assert (answer.error_code, answer.partition_epoch) == (0, 0)


def test_requests_below_version_3_have_no_epochs() -> None:
    image = replicated()
    request = isr_request(image, [])
    request.topics[0].partitions[0].new_isr = [1, 3]
    assert altered(image, request).isr == [1, 3]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"leader_epoch": 1}, ErrorCode.NOT_CONTROLLER),
        ({"partition_epoch": 5}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
        ({"leader_recovery_state": 9}, ErrorCode.INVALID_REQUEST),
        ({"partition_index": 7}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_stale_epochs_are_rejected(fields: dict[str, int], error: ErrorCode) -> None:
    image = replicated()
    request = isr_request(image, [1, 2], **fields)
    before = partition(image)
    assert altered(image, request).error_code == error
    assert partition(image) == before


@pytest.mark.parametrize("isr", [[2, 3], [1, 1], [1, 9], []])
def test_invalid_isrs_are_rejected(isr: list[int]) -> None:
    image = replicated()
    request = isr_request(image, [])
    request.topics[0].partitions[0].new_isr = isr
    assert altered(image, request).error_code == ErrorCode.INVALID_REQUEST


def test_the_sender_must_be_the_leader_with_its_current_epoch() -> None:
    image = replicated()
    request = isr_request(image, [1, 2])
    request.broker_id, request.broker_epoch = 2, image.brokers[2].epoch
    assert altered(image, request).error_code == ErrorCode.INVALID_REQUEST
    for broker_id, epoch in ((1, 99), (77, 0)):
        request.broker_id, request.broker_epoch = broker_id, epoch
        response = alter_partition(image, request, SETTINGS).response
        assert (response.error_code, response.topics) == (ErrorCode.STALE_BROKER_EPOCH, [])


def test_unknown_topic_ids() -> None:
    image = replicated()
    request = isr_request(image, [1, 2])
    request.topics[0].topic_id = b"x" * 16
    assert altered(image, request).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_partition_may_occur_only_once() -> None:
    image = replicated()
    request = isr_request(image, [1, 2])
    request.topics += isr_request(image, [1, 3]).topics
    response = decided(image, alter_partition(image, request, SETTINGS))
    assert [topic.partitions[0].error_code for topic in response.topics] == [0, ErrorCode.INVALID_REQUEST]
    assert partition(image).isr == (1, 2)


def test_fenced_and_stopping_brokers_cannot_join_the_isr() -> None:
    image = replicated()
    fence(image, 2)
    request = isr_request(image, [1, 2, 3])
    assert altered(image, request).error_code == ErrorCode.INELIGIBLE_REPLICA
    unfence(image, 2)
    set_isr(image, 1, 2, 3)
    decided(image, begin_controlled_shutdown(image, 3, SETTINGS))
    assert altered(image, isr_request(image, [1, 2, 3])).error_code == ErrorCode.INELIGIBLE_REPLICA


def test_a_follower_with_an_old_broker_epoch_cannot_join_the_isr() -> None:
    """The broker fetched to the end, died, lost its disk and restarted: what it fetched is lost (KIP-903)."""
    image = replicated()
    set_isr(image, 1, 3)
    fetched_in = image.brokers[2].epoch
    restart(image, 2, cleanly=False)
    unfence(image, 2)
    request = isr_request(image, [1, 3, 2])
    members = request.topics[0].partitions[0].new_isr_with_epochs
    members[2].broker_epoch = fetched_in
    assert altered(image, request).error_code == ErrorCode.INELIGIBLE_REPLICA
    members[2].broker_epoch = image.brokers[2].epoch
    assert altered(image, request).error_code == 0


def test_broker_0_can_be_rejected_too() -> None:
    image = replicated()
    image.brokers[0] = image.brokers.pop(3)
    topic_id = image.topics_by_name["t"].topic_id
    replayed(image, [PartitionChangeRecord(0, topic_id, replicas=[1, 2, 0], isr=[1, 2, 0])])
    request = isr_request(image, [1, 2, 0])
    request.topics[0].partitions[0].new_isr_with_epochs[2].broker_epoch = 12345
    assert altered(image, request).error_code == ErrorCode.INELIGIBLE_REPLICA


def test_replicas_that_leave_below_min_insync_stay_eligible_until_it_is_reached() -> None:
    image = replicated(min_insync_replicas="2")
    set_isr(image, 1, 2)
    assert partition(image).eligible_leader_replicas == ()
    set_isr(image, 1)
    assert partition(image).eligible_leader_replicas == (2,)
    set_isr(image, 1, 3)
    assert partition(image).eligible_leader_replicas == ()


def test_an_unclean_leader_recovers_alone() -> None:
    image = replicated(unclean_leader_election_enable="true")
    set_isr(image, 1)
    fence(image, 1)
    state = partition(image)
    assert (state.leader, state.isr, state.leader_recovery_state) == (2, (2,), 1)
    recovering = isr_request(image, [2, 3], leader_recovery_state=1)
    assert altered(image, recovering).error_code == ErrorCode.INVALID_REQUEST
    set_isr(image, 2, 3)
    assert partition(image).leader_recovery_state == 0
