"""Transactions on the wire: both versions of the protocol, what comes late, and what administrators see and do."""

import pytest
from broker_process import BrokerProcess, StartBroker
from transaction_wire import FIRST, SECOND, Versions, WireProducer, described, stable_end, wait_for_state
from waiting import wait_until
from wire_connection import Connection, fetch_request, produce_request, values_batch, values_in

from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from sskafka.wire.messages.find_coordinator import FindCoordinatorRequest
from sskafka.wire.messages.list_transactions import ListTransactionsRequest
from sskafka.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from sskafka.wire.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest

BOTH = pytest.mark.parametrize("versions", [FIRST, SECOND], ids=["first", "second"])
SMALL = {"transaction.state.log.num.partitions": 2, "offsets.topic.num.partitions": 2}


def committed_values(connection: Connection, topic: str) -> list[bytes | None]:
    """What a consumer makes of a fetch: without the control records and what was aborted."""
    response = connection.call(fetch_request(topic, isolation_level=1), 12).responses[0].partitions[0]
    aborted = {item.producer_id for item in response.aborted_transactions or ()}
    return [] if aborted else [value for value in values_in(response) if value and len(value) != 6]


@BOTH
def test_from_beginning_to_end(connection: Connection, topic: str, versions: Versions) -> None:
    connection.create_topic(topic)
    producer = WireProducer(connection, topic, versions).initialize()
    epoch = producer.epoch
    producer.write(topic, b"one", b"two")
    assert stable_end(connection, topic) == 0
    assert described(connection, topic).transaction_state == "Ongoing"
    assert producer.end() is ErrorCode.NONE
    wait_until(lambda: stable_end(connection, topic) == 3, "the marker is written")
    assert committed_values(connection, topic) == [b"one", b"two"]
    assert producer.epoch == epoch + (versions is SECOND)
    wait_for_state(connection, topic, "CompleteCommit")


@BOTH
def test_a_produce_that_comes_after_the_end_opens_nothing(
    connection: Connection, topic: str, versions: Versions
) -> None:
    connection.create_topic(topic)
    producer = WireProducer(connection, topic, versions).initialize()
    epoch = producer.epoch
    producer.write(topic, b"in time")
    assert producer.end() is ErrorCode.NONE
    wait_for_state(connection, topic, "CompleteCommit")
    late = producer.try_write(topic, b"late", producer_epoch=epoch, base_sequence=1)
    expected = ErrorCode.INVALID_TXN_STATE if versions is FIRST else ErrorCode.INVALID_PRODUCER_EPOCH
    assert late is expected
    assert stable_end(connection, topic) == 2


def test_a_transactional_batch_needs_a_transactional_request(connection: Connection, topic: str) -> None:
    connection.create_topic(topic)
    producer = WireProducer(connection, topic).initialize()
    batch = values_batch(
        b"v", producer_id=producer.producer_id, producer_epoch=producer.epoch, base_sequence=0, transactional=True
    )
    response = connection.call(produce_request(topic, batch), 9).responses[0].partition_responses[0]
    assert ErrorCode(response.error_code) is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@BOTH
def test_a_delayed_end_does_not_touch_the_next_transaction(
    connection: Connection, topic: str, versions: Versions
) -> None:
    """The second version knows it by its epoch. In the first, an id that was taken over has a newer epoch as well."""
    connection.create_topic(topic)
    first = WireProducer(connection, topic, versions).initialize()
    first.write(topic, b"one")
    second = WireProducer(connection, topic, versions).initialize()
    second.write(topic, b"two")
    assert first.end(commit=True) is ErrorCode.PRODUCER_FENCED
    assert first.end(commit=False) is ErrorCode.PRODUCER_FENCED
    assert described(connection, topic).transaction_state == "Ongoing"
    assert first.try_write(topic, b"stale") is ErrorCode.INVALID_PRODUCER_EPOCH
    assert second.end() is ErrorCode.NONE


def test_an_end_repeated_in_the_second_version_is_answered_alike(connection: Connection, topic: str) -> None:
    connection.create_topic(topic)
    producer = WireProducer(connection, topic).initialize()
    epoch = producer.epoch
    producer.write(topic, b"v")
    assert producer.end() is ErrorCode.NONE
    wait_for_state(connection, topic, "CompleteCommit")
    assert producer.end(epoch=epoch) is ErrorCode.NONE
    assert producer.epoch == epoch + 1
    assert producer.end(epoch=epoch, commit=False) is ErrorCode.INVALID_TXN_STATE


def test_one_unknown_partition_keeps_the_others_out(connection: Connection, topic: str) -> None:
    connection.create_topic(topic)
    producer = WireProducer(connection, topic, FIRST).initialize()
    assert producer.add(topic, 0, 7) == {
        0: ErrorCode.OPERATION_NOT_ATTEMPTED,
        7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert producer.add("__consumer_offsets", 0) == {0: ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert described(connection, topic).transaction_state == "Empty"


def test_transactions_are_listed_and_described(connection: Connection, topic: str) -> None:
    connection.create_topic(topic, 2)
    producer = WireProducer(connection, topic).initialize(timeout_ms=12_345)
    producer.write(topic, b"v", partition=1)
    description = described(connection, topic)
    assert (description.transaction_timeout_ms, description.producer_id) == (12_345, producer.producer_id)
    assert [(item.topic, item.partitions) for item in description.topics] == [(topic, [1])]
    assert described(connection, f"{topic}-other").error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND

    def listed(**filters: object) -> list[str]:
        response = connection.call(ListTransactionsRequest(**filters), 2)  # type: ignore[arg-type]
        return [item.transactional_id for item in response.transaction_states]

    assert topic in listed(state_filters=["Ongoing"])
    assert topic not in listed(state_filters=["CompleteCommit"])
    assert listed(producer_id_filters=[producer.producer_id]) == [topic]
    assert topic not in listed(duration_filter=60_000)
    assert topic in listed(transactional_id_pattern=f"{topic[:-1]}.")
    assert topic not in listed(transactional_id_pattern="nothing.*")
    wrong = connection.call(ListTransactionsRequest(transactional_id_pattern="("), 2)
    assert wrong.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert connection.call(ListTransactionsRequest(state_filters=["Sleeping"]), 2).unknown_state_filters == ["Sleeping"]
    producer.end()


def test_a_transaction_open_for_too_long_is_aborted(start_broker: StartBroker) -> None:
    settings = {**SMALL, "transaction.abort.timed.out.transaction.cleanup.interval.ms": 100}
    with Connection(start_broker(settings).bootstrap) as connection:
        connection.create_topic("orders")
        producer = WireProducer(connection, "slow").initialize(timeout_ms=300)
        producer.write("orders", b"forgotten")
        wait_for_state(connection, "slow", "CompleteAbort")
        assert stable_end(connection, "orders") == 2
        assert producer.end() is ErrorCode.PRODUCER_FENCED
        assert producer.try_write("orders", b"more") is ErrorCode.INVALID_PRODUCER_EPOCH


@BOTH
def test_an_open_transaction_survives_a_crash_of_the_broker(start_broker: StartBroker, versions: Versions) -> None:
    broker = start_broker(SMALL)
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("orders")
        producer = WireProducer(connection, "pay", versions).initialize()
        producer.write("orders", b"before")
    broker.restart(unclean=True)
    with Connection(broker.bootstrap) as connection:
        producer.connection = connection
        wait_until(lambda: described(connection, "pay").error_code == 0, "the coordinator has loaded")
        assert stable_end(connection, "orders") == 0
        producer.write("orders", b"after")
        assert producer.end() is ErrorCode.NONE
        wait_until(lambda: stable_end(connection, "orders") == 3, "the marker is written")


def test_a_hanging_transaction_can_be_aborted_by_its_partition(start_broker: StartBroker) -> None:
    """If leaders do not verify transactions, a late batch leaves one open; a marker to the leader ends it."""
    broker: BrokerProcess = start_broker({**SMALL, "transaction.partition.verification.enable": "false"})
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("orders")
        producer = WireProducer(connection, "pay", FIRST).initialize()
        assert producer.try_write("orders", b"hanging") is ErrorCode.NONE
        assert stable_end(connection, "orders") == 0
        asked = DescribeProducersRequest([TopicRequest("orders", [0])])
        (hanging,) = connection.call(asked, 0).topics[0].partitions[0].active_producers
        assert hanging.current_txn_start_offset == 0
        marker = WritableTxnMarker(
            hanging.producer_id,
            hanging.producer_epoch,
            transaction_result=False,
            topics=[WritableTxnMarkerTopic("orders", [0])],
            coordinator_epoch=max(hanging.coordinator_epoch, 0),
        )
        response = connection.call(WriteTxnMarkersRequest([marker]), 1)
        assert response.markers[0].topics[0].partitions[0].error_code == 0
        assert stable_end(connection, "orders") == 2


def test_leaders_add_partitions_where_they_do_not_verify(start_broker: StartBroker) -> None:
    broker = start_broker({**SMALL, "transaction.partition.verification.enable": "false"})
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("orders")
        producer = WireProducer(connection, "pay", SECOND).initialize()
        producer.write("orders", b"v")
        assert [item.topic for item in described(connection, "pay").topics] == ["orders"]
        assert producer.end() is ErrorCode.NONE
        wait_until(lambda: stable_end(connection, "orders") == 2, "the marker is written")


def test_who_wants_no_answer_cannot_open_a_transaction(connection: Connection, bootstrap: str, topic: str) -> None:
    connection.create_topic(topic)
    producer = WireProducer(connection, topic, FIRST).initialize()
    producer.add(topic, 0)
    batch = values_batch(
        b"v", producer_id=producer.producer_id, producer_epoch=producer.epoch, base_sequence=0, transactional=True
    )
    request = produce_request(topic, batch, acks=0)
    request.transactional_id = topic
    with Connection(bootstrap) as other:
        other.send(request, 9)
        assert other.is_closed_by_broker()
    assert stable_end(connection, topic) == 0


def test_offsets_in_a_transaction_that_nobody_can_coordinate_yet(start_broker: StartBroker) -> None:
    with Connection(start_broker(SMALL).bootstrap) as connection:
        connection.create_topic("orders")
        find = FindCoordinatorRequest("readers")
        wait_until(lambda: connection.call(find, 0).error_code == 0, "the group has a coordinator")
        wanted = TxnOffsetCommitRequestTopic("orders", [TxnOffsetCommitRequestPartition(0, 1)])

        def outcome() -> int:
            response = connection.call(TxnOffsetCommitRequest("pay", "readers", 1, 0, topics=[wanted]), 3)
            return int(response.topics[0].partitions[0].error_code)

        wait_until(lambda: outcome() == ErrorCode.COORDINATOR_NOT_AVAILABLE, "__transaction_state is missed")
