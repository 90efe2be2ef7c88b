"""Compare the hand-written Produce codec with the compiled one, which other tests compare with kio."""

from itertools import product
from random import Random

import pytest
from tests.support.steps import finished

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.codec import MalformedMessageError, decode, encode
from sskafka.wire.header import decode_response_header
from sskafka.wire.leaders import CurrentLeader, NodeEndpoint
from sskafka.wire.messages import produce as messages
from sskafka.wire.produce import (
    ProducedPartition,
    ProduceRequestView,
    Topic,
    decode_produce_request,
    encode_produce_response,
    encode_produce_response_in_slices,
)

VERSIONS = range(3, 14)
TOPIC_ID = bytes(range(16))


def topic_of(version: int, name: str = "orders") -> Topic:
    return name if version < 13 else TOPIC_ID


def topic_data(version: int, name: str, partitions: list[messages.PartitionProduceData]) -> messages.TopicProduceData:
    topic = {"name": name} if version < 13 else {"topic_id": TOPIC_ID}
    return messages.TopicProduceData(**topic, partition_data=partitions)


def request(version: int, random: Random) -> messages.ProduceRequest:
    topics = []
    for _ in range(random.choice([0, 1, 1, 1, 2, 130])):
        partitions = [
            messages.PartitionProduceData(random.randrange(2**31), random.choice([None, b"", b"r" * 5, b"r" * 20_000]))
            for _ in range(random.choice([0, 1, 1, 1, 3]))
        ]
        topics.append(topic_data(version, random.choice(["", "t", "ä" * 100]), partitions))
    return messages.ProduceRequest(random.choice([None, None, "", "tx"]), random.choice([-1, 0, 1]), 30_000, topics)


def view_of(message: messages.ProduceRequest, version: int) -> ProduceRequestView:
    topics: list[tuple[Topic, list[tuple[int, memoryview | None]]]] = [
        (
            topic.name if version < 13 else topic.topic_id,
            [(p.index, None if p.records is None else memoryview(p.records)) for p in topic.partition_data],
        )
        for topic in message.topic_data
    ]
    return ProduceRequestView(message.transactional_id, message.acks, message.timeout_ms, topics)


def decode_compiled(version: int, buffer: bytes) -> ProduceRequestView | None:
    try:
        return view_of(decode(messages.ProduceRequest, version, buffer), version)
    except MalformedMessageError:
        return None


def decode_by_hand(version: int, buffer: bytes) -> ProduceRequestView | None:
    try:
        return decode_produce_request(memoryview(buffer), 0, version)
    except MalformedMessageError:
        return None


@pytest.mark.parametrize("version", VERSIONS)
def test_requests_are_decoded_like_the_compiled_codec(version: int) -> None:
    random = Random(version)
    for _ in range(100):
        message = request(version, random)
        encoded = b"head" + encode(message, version)
        assert decode_produce_request(memoryview(encoded), 4, version) == view_of(message, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_malformed_requests_are_rejected_like_the_compiled_codec(version: int) -> None:
    random = Random(version)
    for _ in range(150):
        message = messages.ProduceRequest(
            random.choice([None, "tx"]),
            1,
            2,
            [topic_data(version, "orders", [messages.PartitionProduceData(0, b"rec" * 50)] * random.choice([1, 2]))],
        )
        encoded = bytearray(encode(message, version))
        for _ in range(random.choice([1, 2])):
            encoded[random.randrange(min(40, len(encoded)))] = random.choice([0, 1, 2, 3, 0x7F, 0x80, 0xFF])
        damaged = bytes(encoded) + random.choice([b"", b"", b"\0"])
        assert decode_by_hand(version, damaged) == decode_compiled(version, damaged)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_truncated_request_is_rejected(version: int) -> None:
    message = messages.ProduceRequest("tx", 1, 2, [topic_data(version, "t", [messages.PartitionProduceData(0, b"r")])])
    plain = messages.ProduceRequest(None, 1, 2, [topic_data(version, "t", [messages.PartitionProduceData(0, b"r")])])
    for encoded in (encode(message, version), encode(plain, version)):
        for length in range(len(encoded)):
            with pytest.raises(MalformedMessageError):
                decode_produce_request(memoryview(encoded)[:length], 0, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_records_can_be_patched_in_the_request(version: int) -> None:
    partition = messages.PartitionProduceData(0, b"batch")
    buffer = bytearray(encode(messages.ProduceRequest(None, 1, 2, [topic_data(version, "t", [partition])]), version))
    records = decode_produce_request(memoryview(buffer), 0, version).topics[0][1][0][1]
    assert records is not None
    records[:] = b"BATCH"
    assert b"BATCH" in buffer


def response_of(version: int, frame: bytes) -> messages.ProduceResponse:
    assert int.from_bytes(frame[:4]) == len(frame) - 4
    correlation_id, position = decode_response_header(0, version, frame, 4)
    assert correlation_id == 77
    return decode(messages.ProduceResponse, version, frame, position)


def expected_response(
    version: int, topics: list[tuple[Topic, list[ProducedPartition]]], throttle_ms: int
) -> messages.ProduceResponse:
    responses = []
    for topic, partitions in topics:
        rows = [
            messages.PartitionProduceResponse(
                index=index,
                error_code=error,
                base_offset=base,
                log_append_time_ms=time_ms,
                log_start_offset=start if version >= 5 else -1,
                error_message=text if version >= 8 else None,
                record_errors=[messages.BatchIndexAndErrorMessage(*item) for item in errors] if version >= 8 else [],
            )
            for index, error, base, time_ms, start, text, errors in partitions
        ]
        name, topic_id = (topic, ZERO_UUID) if isinstance(topic, str) else ("", topic)
        responses.append(messages.TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=rows))
    return messages.ProduceResponse(responses, throttle_ms)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("shape", [[1], [], [0], [3], [1, 2], [130]])
def test_responses_are_encoded_like_the_compiled_codec(version: int, shape: list[int]) -> None:
    for name, text in product(["orders", "t" * 200], [None, "no", "x" * 300]):
        topics: list[tuple[Topic, list[ProducedPartition]]] = [
            (topic_of(version, name), [(index, 0, 2**40 + index, -1, 5, text, ()) for index in range(partitions)])
            for partitions in shape
        ]
        frame = encode_produce_response(version, 77, topics, 9)
        assert response_of(version, frame) == expected_response(version, topics, 9)
        assert frame.endswith(encode(expected_response(version, topics, 9), version))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("shape", [[1], [], [0], [1, 2], [130]])
def test_responses_are_the_same_in_slices(version: int, shape: list[int]) -> None:
    topic = topic_of(version)
    topics: list[tuple[Topic, list[ProducedPartition]]] = [
        (topic, [(index, 6, -1, -1, 5, "no", ()) for index in range(partitions)]) for partitions in shape
    ]
    leaders = {(topic, 0): CurrentLeader(3, 4)}
    endpoints = [NodeEndpoint(3, "host", 9092)]
    expected = encode_produce_response(version, 77, topics, leaders=leaders, node_endpoints=endpoints)
    steps = encode_produce_response_in_slices(version, 77, topics, leaders=leaders, node_endpoints=endpoints)
    assert finished(steps) == expected


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("errors", [[(3, "no")], [(number, None) for number in range(130)]])
def test_record_errors_are_encoded_from_version_8_on(version: int, errors: list[tuple[int, str | None]]) -> None:
    topics: list[tuple[Topic, list[ProducedPartition]]] = [
        (topic_of(version), [(0, 87, -1, -1, 5, "some are bad", errors), (1, 0, 7, -1, 5, None, ())])
    ]
    frame = encode_produce_response(version, 77, topics, 9)
    assert response_of(version, frame) == expected_response(version, topics, 9)


@pytest.mark.parametrize("version", VERSIONS)
def test_current_leaders_are_encoded_from_version_10_on(version: int) -> None:
    topic = topic_of(version)
    partitions: list[ProducedPartition] = [(0, 6, -1, -1, -1, None, ()), (1, 0, 5, -1, 0, None, ())]
    frame = encode_produce_response(
        version,
        77,
        [(topic, partitions)],
        leaders={(topic, 0): CurrentLeader(3, 4)},
        node_endpoints=[NodeEndpoint(3, "host", 9092), NodeEndpoint(4, "h" * 200, 1, "rack")],
    )
    expected = expected_response(version, [(topic, partitions)], 0)
    if version >= 10:
        expected.responses[0].partition_responses[0].current_leader = messages.LeaderIdAndEpoch(3, 4)
        expected.node_endpoints = [
            messages.NodeEndpoint(3, "host", 9092, None),
            messages.NodeEndpoint(4, "h" * 200, 1, "rack"),
        ]
    assert response_of(version, frame) == expected
    assert frame.endswith(encode(expected, version))


def test_a_transactional_id_has_the_legacy_maximum_length() -> None:
    asked = messages.ProduceRequest(transactional_id="t" * 32_768, acks=-1, timeout_ms=1_000)
    with pytest.raises(MalformedMessageError, match="32768 bytes"):
        decode_produce_request(memoryview(encode(asked, 12)), 0, 12)
