"""Produce requests with many partitions are appended in pieces: what clients see is the same as of short requests."""

import time
from typing import Any

import pytest
from transaction_wire import FIRST, RETRIED, SECOND, Versions, WireProducer, stable_end
from waiting import wait_until
from wire_connection import PRODUCE_VERSION, Connection, produce_request, values_in

from sskafka.model.errors import ErrorCode
from sskafka.records.builder import NewRecord, build_batch
from sskafka.records.compression import Compression
from sskafka.servers.kafka.handlers.long_produce import MANY_PARTITIONS
from sskafka.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, OpData, RequestEntryData
from sskafka.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PARTITIONS = 3 * MANY_PARTITIONS
VALUE = bytes(100)


def new_batch(*values: bytes, **options: Any) -> bytes:
    """A batch that is too young for retention."""
    now_ms = int(time.time() * 1000)
    return bytes(build_batch([NewRecord(value=value, timestamp=now_ms) for value in values], **options))


def request_of(topic: str, batches: dict[int, bytes], acks: int = -1, transactional_id: str | None = None) -> Any:
    partitions = [PartitionProduceData(index, batch) for index, batch in batches.items()]
    data = TopicProduceData(name=topic, partition_data=partitions)
    return ProduceRequest(transactional_id, acks=acks, timeout_ms=10_000, topic_data=[data])


def codes_of(response: Any) -> dict[int, ErrorCode]:
    (topic,) = response.responses
    return {part.index: ErrorCode(part.error_code) for part in topic.partition_responses}


def numbered(count: int = PARTITIONS, **options: Any) -> dict[int, bytes]:
    return {i: new_batch(VALUE, b"%d" % i, **options) for i in range(count)}


@pytest.mark.parametrize("acks", [1, -1])
def test_every_partition_is_appended_and_answered(connection: Connection, topic: str, acks: int) -> None:
    connection.create_topic(topic, PARTITIONS)
    batches = numbered(PARTITIONS + 5)
    for base_offset in (0, 2):
        response = connection.call(request_of(topic, batches, acks), PRODUCE_VERSION)
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert codes_of(response) == {i: unknown if i >= PARTITIONS else ErrorCode.NONE for i in batches}
        rows = response.responses[0].partition_responses
        assert [row.base_offset for row in rows[:PARTITIONS]] == [base_offset] * PARTITIONS
    for index in (0, MANY_PARTITIONS, PARTITIONS - 1):
        assert values_in(connection.fetch(topic, partition=index)) == [VALUE, b"%d" % index] * 2


def test_later_requests_do_not_overtake_it(connection: Connection, topic: str) -> None:
    connection.create_topic(topic, PARTITIONS)
    last = PARTITIONS - 1
    sent = [
        connection.send(request_of(topic, numbered(), acks=1), PRODUCE_VERSION),
        connection.send(produce_request(topic, new_batch(b"after"), last, acks=1), PRODUCE_VERSION),
    ]
    assert [connection.receive()[0] for _ in sent] == sent
    assert values_in(connection.fetch(topic, partition=last)) == [VALUE, b"%d" % last, b"after"]


def test_large_batches_are_inspected_in_between(connection: Connection, topic: str) -> None:
    connection.create_topic(topic, PARTITIONS)
    batches = numbered()
    batches[7] = new_batch(bytes(900_000), bytes(900_000), compression=Compression.GZIP)
    assert set(codes_of(connection.call(request_of(topic, batches), PRODUCE_VERSION)).values()) == {ErrorCode.NONE}


def test_without_acks_there_is_no_response(connection: Connection, topic: str) -> None:
    connection.create_topic(topic, PARTITIONS)
    connection.send(request_of(topic, numbered(), acks=0), PRODUCE_VERSION)
    last = PARTITIONS - 1
    wait_until(lambda: values_in(connection.fetch(topic, partition=last)) == [VALUE, b"%d" % last], "it is appended")
    connection.send(request_of(topic, numbered(PARTITIONS + 1), acks=0), PRODUCE_VERSION)
    assert connection.is_closed_by_broker(), "the only sign of a failure"


def test_without_acks_a_throttled_client_stays_connected(bootstrap: str, topic: str) -> None:
    with Connection(bootstrap, client_id=topic) as connection:
        connection.create_topic(topic, PARTITIONS)
        quota = RequestEntryData([EntityData("client-id", topic)], [OpData("producer_byte_rate", 100_000.0, False)])
        assert connection.call(AlterClientQuotasRequest([quota]), 1).entries[0].error_code == 0
        for _ in range(3):
            connection.send(request_of(topic, numbered(), acks=0), PRODUCE_VERSION)
        last = PARTITIONS - 1
        wait_until(lambda: connection.fetch(topic, partition=last).high_watermark == 6, "all three are appended")


@pytest.mark.parametrize("versions", [FIRST, SECOND], ids=["first", "second"])
def test_transactions(connection: Connection, topic: str, versions: Versions) -> None:
    connection.create_topic(topic, PARTITIONS)
    producer = WireProducer(connection, topic, versions).initialize()
    identity = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch, "base_sequence": 0}
    request = request_of(topic, numbered(transactional=True, **identity), transactional_id=topic)
    if versions.adds_partitions:
        refused = codes_of(connection.call(request, versions.produce))
        assert set(refused.values()) == {ErrorCode.INVALID_TXN_STATE}
        wait_until(lambda: not any(producer.add(topic, *range(PARTITIONS)).values()), "the partitions are added")
    answers: list[dict[int, ErrorCode]] = []

    def is_settled() -> bool:
        answers.append(codes_of(connection.call(request, versions.produce)))
        return not RETRIED & set(answers[-1].values())

    wait_until(is_settled, "all partitions are written")
    assert answers[-1] == dict.fromkeys(range(PARTITIONS), ErrorCode.NONE)
    assert producer.end() is ErrorCode.NONE
    for index in (0, PARTITIONS - 1):
        wait_until(lambda index=index: stable_end(connection, topic, index) == 3, "the marker is written")


def test_batches_of_a_transaction_without_its_id_are_refused(connection: Connection, topic: str) -> None:
    connection.create_topic(topic, PARTITIONS)
    batches = numbered()
    batches[PARTITIONS - 1] = new_batch(b"x", transactional=True, producer_id=1, producer_epoch=0)
    codes = codes_of(connection.call(request_of(topic, batches), PRODUCE_VERSION))
    assert set(codes.values()) == {ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}
    assert connection.fetch(topic, partition=0).high_watermark == 0, "nothing was appended"
