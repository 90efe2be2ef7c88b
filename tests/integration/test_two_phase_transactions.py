"""Two-phase commits on the wire (KIP-939): no timeout, taken over and ended by another producer, across a restart."""

from broker_process import StartBroker
from test_protocol_transactions import SMALL, committed_values
from transaction_wire import FIRST, WireProducer, described, stable_end, wait_for_state
from waiting import wait_until
from wire_connection import Connection

from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.init_producer_id import InitProducerIdRequest

TWO_PHASE = {
    **SMALL,
    "transaction.two.phase.commit.enable": "true",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 50,
}
NO_TIMEOUT_MS = 2**31 - 1


def test_two_phase_producers_are_refused_unless_the_broker_allows_them(connection: Connection, topic: str) -> None:
    producer = WireProducer(connection, topic).initialize()
    for asked in ({"enable2_pc": True}, {"keep_prepared_txn": True}):
        request = InitProducerIdRequest(topic, 60_000, **asked)
        answer = producer.until_settled(request, 6)
        assert ErrorCode(answer.error_code) is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    answer = producer.until_settled(InitProducerIdRequest(topic, 60_000), 6)
    assert (answer.error_code, answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch) == (0, -1, -1)


def test_a_prepared_transaction_outlives_its_timeout_its_producer_and_its_broker(
    start_broker: StartBroker, topic: str
) -> None:
    broker = start_broker(TWO_PHASE)
    with Connection(broker.bootstrap) as connection:
        connection.create_topic(topic)
        writer = WireProducer(connection, topic, FIRST).initialize()
        asked = InitProducerIdRequest(topic, 1, enable2_pc=True)
        answer = writer.until_settled(asked, 6)
        writer._take(answer.producer_id, answer.producer_epoch)
        writer.write(topic, b"one")
        written_by = (answer.producer_id, answer.producer_epoch)
        timed = WireProducer(connection, f"{topic}-timed", FIRST).initialize(timeout_ms=1)
        timed.add(topic, 0)
        wait_for_state(connection, f"{topic}-timed", "CompleteAbort")  # so the sweep has been here
        assert described(connection, topic).transaction_state == "Ongoing"
        assert described(connection, topic).transaction_timeout_ms == NO_TIMEOUT_MS
    broker.restart()
    with Connection(broker.bootstrap) as connection:
        heir = WireProducer(connection, topic, FIRST)
        kept = InitProducerIdRequest(topic, 1, enable2_pc=True, keep_prepared_txn=True)
        answer = heir.until_settled(kept, 6)
        assert (answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch) == written_by
        heir._take(answer.producer_id, answer.producer_epoch)
        writer.connection = connection
        assert writer.end() is ErrorCode.PRODUCER_FENCED
        assert stable_end(connection, topic) == 0
        assert heir.end() is ErrorCode.NONE
        wait_until(lambda: stable_end(connection, topic) > 1, "the marker is written")
        assert b"one" in committed_values(connection, topic)
