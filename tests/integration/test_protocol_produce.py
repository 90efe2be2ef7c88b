"""Produce on the wire: what is refused leaves the log as it was; sequences make retries harmless."""

import struct
import time
from collections.abc import Callable

import pytest
from wire_connection import Connection, fetch_request, values_batch, values_in

from sskafka.model.errors import ErrorCode
from sskafka.records.batch import read_header, write_crc, write_header
from sskafka.records.builder import NewRecord, build_batch
from sskafka.records.compression import Compression
from sskafka.wire.messages.init_producer_id import InitProducerIdRequest
from sskafka.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

INT32_MAX = 2**31 - 1
MILLION_YEARS_MS = 10**15 * 30


@pytest.fixture
def producer_id(connection: Connection) -> int:
    response = connection.call(InitProducerIdRequest(transactional_id=None), version=4)
    assert (response.error_code, response.producer_epoch) == (0, 0)
    assert response.producer_id >= 0
    return int(response.producer_id)


def with_header(batch: bytearray, **changes: int) -> bytearray:
    """The batch with other header fields and a checksum that fits them."""
    write_header(batch, read_header(batch)._replace(**changes))
    write_crc(batch, 0, len(batch))
    return batch


def wrong_crc() -> bytearray:
    batch = values_batch(b"spoilt")
    batch[-1] ^= 1
    return batch


def wrong_magic(magic: int) -> bytearray:
    batch = values_batch(b"old")
    batch[16] = magic
    return batch


BAD_BATCHES: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "crc": wrong_crc,
    "magic 1": lambda: wrong_magic(1),
    "magic 77": lambda: wrong_magic(77),
    "too few records": lambda: with_header(values_batch(b"a", b"b"), record_count=1, last_offset_delta=4),
    "too many records": lambda: with_header(values_batch(b"a", b"b"), record_count=9),
    "no records": lambda: with_header(values_batch(b"a"), record_count=0, last_offset_delta=0),
    "negative count": lambda: with_header(values_batch(b"a"), record_count=-1, last_offset_delta=-2),
    "cut short": lambda: values_batch(b"cut short")[:-3],
    "shorter than a header": lambda: values_batch(b"x")[:40],
    "negative length": lambda: b"".join((bytes(8), struct.pack(">i", -7), values_batch(b"x")[12:])),
    "control batch": lambda: values_batch(b"x", control=True, producer_id=5, producer_epoch=0, base_sequence=0),
}


@pytest.mark.parametrize("kind", BAD_BATCHES)
def test_bad_batches_are_refused_and_leave_no_trace(connection: Connection, topic: str, kind: str) -> None:
    connection.create_topic(topic)
    connection.produce(topic, values_batch(b"before"))
    refusals = (ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD)
    if kind in {"nothing", "shorter than a header"}:  # no batch at all: nothing is appended, with or without an error
        refusals = (*refusals, ErrorCode.NONE)
    assert connection.produce(topic, BAD_BATCHES[kind]()).error_code in refusals
    assert connection.produce(topic, values_batch(b"after")).base_offset == 1
    assert values_in(connection.fetch(topic)) == [b"before", b"after"]


@pytest.mark.usefixtures("_ours")
def test_unknown_codecs_are_refused(connection: Connection, topic: str) -> None:
    connection.create_topic(topic)
    refused = connection.produce(topic, with_header(values_batch(b"x"), attributes=7))
    assert refused.error_code == ErrorCode.INVALID_RECORD  # which clients do not try again
    assert values_in(connection.fetch(topic)) == []


def test_a_bad_partition_does_not_spoil_the_others_of_a_request(connection: Connection, topic: str) -> None:
    connection.create_topic(topic, 2)
    data = [PartitionProduceData(0, wrong_crc()), PartitionProduceData(1, values_batch(b"good"))]
    request = ProduceRequest(acks=1, timeout_ms=5000, topic_data=[TopicProduceData(topic, partition_data=data)])
    results = connection.call(request, version=9).responses[0].partition_responses
    assert {r.index: r.error_code for r in results} == {0: ErrorCode.CORRUPT_MESSAGE, 1: 0}
    assert values_in(connection.fetch(topic, partition=1)) == [b"good"]


def test_unknown_topics_partitions_and_acks(connection: Connection, topic: str) -> None:
    connection.create_topic(topic)
    batch = values_batch(b"value")
    for name, partition in (("no-such-topic", 0), (topic, 1), (topic, -1), ("bad name/", 0)):
        refusal = connection.produce(name, batch, partition)
        assert refusal.error_code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)
        assert (refusal.base_offset, refusal.log_append_time_ms, refusal.log_start_offset) == (-1, -1, -1)
    assert connection.produce(topic, batch, acks=5).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    for no_batch in (b"", batch[:-2], batch + batch):  # looked at before acks
        assert connection.produce(topic, no_batch, acks=5).error_code == ErrorCode.INVALID_RECORD
    assert values_in(connection.fetch(topic)) == []


def test_size_limit_is_that_of_the_batch(connection: Connection, topic: str) -> None:
    connection.create_topic(topic, max_message_bytes=1000)
    fits = values_batch(bytes(900))
    exact = values_batch(bytes(900 + 1000 - len(fits)))
    assert len(exact) == 1000
    assert connection.produce(topic, exact).error_code == 0
    assert connection.produce(topic, values_batch(bytes(1000))).error_code == ErrorCode.MESSAGE_TOO_LARGE
    squeezed = values_batch(bytes(100_000), compression=Compression.GZIP)
    assert connection.produce(topic, squeezed).error_code == 0


def test_timestamps_far_in_the_future_are_refused(connection: Connection, topic: str) -> None:
    connection.create_topic(topic)
    batch = build_batch([NewRecord(value=b"later", timestamp=MILLION_YEARS_MS)])
    assert connection.produce(topic, batch).error_code == ErrorCode.INVALID_TIMESTAMP


def test_append_time_is_answered_and_stored(connection: Connection, topic: str) -> None:
    connection.create_topic(topic, message_timestamp_type="LogAppendTime")
    produced = connection.produce(topic, values_batch(b"stamped"))
    fetched = connection.fetch(topic)
    header = read_header(fetched.records or b"")
    assert produced.log_append_time_ms == header.max_timestamp > 1_700_000_000_000


def test_topic_ids(connection: Connection, topic: str) -> None:
    topic_id = connection.create_topic(topic)
    data = [PartitionProduceData(0, values_batch(b"by id"))]
    topics = [TopicProduceData(topic_id=t, partition_data=data) for t in (topic_id, bytes(range(16)))]
    request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=topics)
    known, unknown = connection.call(request, version=13).responses
    assert (known.topic_id, known.partition_responses[0].error_code) == (topic_id, 0)
    assert unknown.partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert values_in(connection.fetch(topic)) == [b"by id"]


# ---------------------------------------------------------------------------------------------------- sequences


def sequenced(producer_id: int, sequence: int, *values: bytes, epoch: int = 0) -> bytearray:
    return values_batch(*values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)


def test_duplicates_are_answered_with_their_first_offset(connection: Connection, topic: str, producer_id: int) -> None:
    connection.create_topic(topic)
    batches = [sequenced(producer_id, 2 * n, b"%d" % n, b"%d again" % n) for n in range(7)]
    for n, batch in enumerate(batches):
        assert connection.produce(topic, batch).base_offset == 2 * n
    for n in range(2, 7):  # the last five are remembered
        repeated = connection.produce(topic, batches[n])
        assert (repeated.error_code, repeated.base_offset) == (0, 2 * n)
    forgotten = connection.produce(topic, batches[0])
    assert forgotten.error_code in (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
    )
    assert connection.fetch(topic).high_watermark == 14


def test_gaps_in_sequences_are_refused(connection: Connection, topic: str, producer_id: int) -> None:
    connection.create_topic(topic)
    assert connection.produce(topic, sequenced(producer_id, 0, b"zero")).error_code == 0
    gap = connection.produce(topic, sequenced(producer_id, 2, b"two"))
    assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert connection.produce(topic, sequenced(producer_id, 1, b"one")).base_offset == 1
    assert values_in(connection.fetch(topic)) == [b"zero", b"one"]


def test_epochs_fence_older_producers(connection: Connection, topic: str, producer_id: int) -> None:
    connection.create_topic(topic)
    assert connection.produce(topic, sequenced(producer_id, 0, b"old", epoch=1)).error_code == 0
    skipped = connection.produce(topic, sequenced(producer_id, 1, b"new", epoch=2))
    assert skipped.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER  # a new epoch begins at 0
    assert connection.produce(topic, sequenced(producer_id, 0, b"new", epoch=2)).error_code == 0
    zombie = connection.produce(topic, sequenced(producer_id, 1, b"zombie", epoch=1))
    assert zombie.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert values_in(connection.fetch(topic)) == [b"old", b"new"]


def test_sequences_wrap_to_zero(connection: Connection, topic: str, producer_id: int) -> None:
    connection.create_topic(topic)
    batches = [
        sequenced(producer_id, INT32_MAX - 2, b"a", b"b"),
        sequenced(producer_id, INT32_MAX, b"c", b"d"),
        sequenced(producer_id, 1, b"e"),
    ]
    for batch in batches:
        assert connection.produce(topic, batch).error_code == 0
    assert connection.produce(topic, batches[1]).base_offset == 2
    assert connection.fetch(topic).high_watermark == 5


def test_producer_ids_are_never_given_twice(bootstrap: str, connection: Connection, producer_id: int) -> None:
    with Connection(bootstrap) as other:
        clients = (connection, other) * 20
        request = InitProducerIdRequest(transactional_id=None)
        given = {producer_id, *(client.call(request, version=4).producer_id for client in clients)}
    assert len(given) == 41


def test_pipelined_sequences_arrive_in_order(connection: Connection, topic: str, producer_id: int) -> None:
    connection.create_topic(topic)
    data = [
        [TopicProduceData(topic, partition_data=[PartitionProduceData(0, sequenced(producer_id, n, b"%d" % n))])]
        for n in range(30)
    ]
    for topic_data in data:
        connection.send(ProduceRequest(acks=-1, timeout_ms=5000, topic_data=topic_data), version=9)
    results = [connection.receive()[1].responses[0].partition_responses[0] for _ in data]
    assert [(result.error_code, result.base_offset) for result in results] == [(0, n) for n in range(30)]
    response = connection.call(fetch_request(topic), version=12)
    assert values_in(response.responses[0].partitions[0]) == [b"%d" % n for n in range(30)]


# --------------------------------------------------------------- what is told of a refusal (Apache Kafka 4.3.1's words)


def test_records_without_a_key_are_blamed_one_by_one(connection: Connection, topic: str) -> None:
    connection.create_topic(topic, cleanup_policy="compact")
    records = [NewRecord(key=key, value=b"v", timestamp=now_ms()) for key in (b"a", None, b"c", None)]
    refused = connection.produce(topic, build_batch(records))
    text = f"Compacted topic cannot accept message without key in topic partition {topic}-0"
    assert [(error.batch_index, error.batch_index_error_message) for error in refused.record_errors] == [
        (1, text),
        (3, text),
    ]
    assert refused.error_code == ErrorCode.INVALID_RECORD
    assert refused.error_message == (
        "One or more records have been rejected due to 2 record errors in total, and only showing the first three "
        f"errors at most: [RecordError(batchIndex=1, message='{text}'), RecordError(batchIndex=3, message='{text}')]"
    )
    assert (refused.base_offset, refused.log_start_offset) == (-1, 0)


def test_records_with_impossible_timestamps_are_blamed_one_by_one(connection: Connection, topic: str) -> None:
    connection.create_topic(topic, message_timestamp_before_max_ms=60_000, message_timestamp_after_max_ms=60_000)
    now = now_ms()
    records = [NewRecord(value=b"v", timestamp=timestamp) for timestamp in (now, now - 120_000, now + 120_000)]
    refused = connection.produce(topic, build_batch(records))
    assert refused.error_code == ErrorCode.INVALID_TIMESTAMP
    assert refused.error_message == "One or more records have been rejected due to invalid timestamp"
    assert [error.batch_index for error in refused.record_errors] == [1, 2]
    first = f"Timestamp {now - 120_000} of message with offset 1 is out of range. The timestamp should be within ["
    assert refused.record_errors[0].batch_index_error_message.startswith(first)


def test_a_partition_takes_one_batch_a_request(connection: Connection, topic: str) -> None:
    connection.create_topic(topic)
    batch = values_batch(b"x")
    refused = connection.produce(topic, bytes(batch) * 2)
    assert (refused.error_code, refused.error_message) == (ErrorCode.INVALID_RECORD, None)
    for cut in (batch[:-3], batch[:30], b"junk"):
        assert connection.produce(topic, cut).error_code == ErrorCode.INVALID_RECORD
    assert connection.produce(topic, wrong_magic(3)).error_message == "Invalid magic found in record: 3"
    assert connection.produce(topic, with_header(values_batch(b"x"), base_offset=55)).error_code == (
        ErrorCode.INVALID_RECORD
    )
    assert values_in(connection.fetch(topic)) == []


def test_a_transactional_batch_needs_a_transactional_id(connection: Connection, topic: str) -> None:
    connection.create_topic(topic)
    batch = values_batch(b"x", transactional=True, producer_id=5, producer_epoch=0, base_sequence=0)
    assert connection.produce(topic, batch).error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert values_in(connection.fetch(topic)) == []


def now_ms() -> int:
    return time.time_ns() // 1_000_000
