"""Compare the hand-written Fetch codec with the compiled one, which other tests compare with kio."""

from itertools import product
from random import Random

import pytest
from tests.support.steps import finished

from sskafka.model.ids import ZERO_UUID, EpochEnd
from sskafka.wire.codec import MalformedMessageError, decode, encode
from sskafka.wire.fetch import (
    FetchedPartition,
    FetchRequestView,
    PartitionTags,
    ReplicaTags,
    Topic,
    decode_fetch_request,
    encode_fetch_response,
    encode_fetch_response_in_slices,
)
from sskafka.wire.header import decode_response_header
from sskafka.wire.leaders import CurrentLeader, NodeEndpoint
from sskafka.wire.messages import fetch as messages

VERSIONS = range(4, 19)
TOPIC_ID = bytes(range(16))
NO_WATERMARK = messages.FetchPartition().high_watermark


def fetch_topic(version: int, partitions: list[messages.FetchPartition]) -> messages.FetchTopic:
    topic = {"topic": "orders"} if version < 13 else {"topic_id": TOPIC_ID}
    return messages.FetchTopic(**topic, partitions=partitions)


def forgotten_topic(version: int, partitions: list[int]) -> messages.ForgottenTopic:
    topic = {"topic": "orders"} if version < 13 else {"topic_id": TOPIC_ID}
    return messages.ForgottenTopic(**topic, partitions=partitions)


def fetch_partition(version: int, random: Random) -> messages.FetchPartition:
    partition = messages.FetchPartition(random.randrange(100), fetch_offset=2**40, partition_max_bytes=1 << 20)
    if version >= 5:
        partition.log_start_offset = random.randrange(9)
    if version >= 9:
        partition.current_leader_epoch = random.randrange(9)
    if version >= 12:
        partition.last_fetched_epoch = random.randrange(9)
    if version >= 17 and random.random() < 0.3:
        partition.replica_directory_id = random.randbytes(16)
    if version >= 18 and random.random() < 0.3:
        partition.high_watermark = random.randrange(2**40)
    return partition


def request(version: int, random: Random) -> messages.FetchRequest:
    message = messages.FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=2**20, isolation_level=1)
    message.topics = [
        fetch_topic(version, [fetch_partition(version, random) for _ in range(random.choice([0, 1, 3, 130]))])
        for _ in range(random.choice([0, 1, 1, 2]))
    ]
    if version < 15:
        message.replica_id = random.choice([-1, 2])
    elif random.random() < 0.5:
        message.replica_state = messages.ReplicaState(5, 2**40)
    if version >= 7:
        message.session_id, message.session_epoch = random.randrange(2**31), random.randrange(2**31)
        message.forgotten_topics_data = [
            forgotten_topic(version, list(range(random.choice([0, 1, 200]))))
            for _ in range(random.choice([0, 0, 1, 3]))
        ]
    if version >= 11:
        message.rack_id = random.choice(["", "rack"])
    if version >= 12:
        message.cluster_id = random.choice([None, "cluster"])
    return message


def view_of(message: messages.FetchRequest, version: int) -> FetchRequestView:
    def name(topic: messages.FetchTopic | messages.ForgottenTopic) -> Topic:
        return topic.topic if version < 13 else topic.topic_id

    has_state = version >= 15
    return FetchRequestView(
        max_wait_ms=message.max_wait_ms,
        min_bytes=message.min_bytes,
        max_bytes=message.max_bytes,
        isolation_level=message.isolation_level,
        session_id=message.session_id,
        session_epoch=message.session_epoch,
        replica_id=message.replica_state.replica_id if has_state else message.replica_id,
        replica_epoch=message.replica_state.replica_epoch,
        topics=[
            (
                name(topic),
                [
                    (
                        partition.partition,
                        partition.current_leader_epoch,
                        partition.fetch_offset,
                        partition.last_fetched_epoch,
                        partition.log_start_offset,
                        partition.partition_max_bytes,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in message.topics
        ],
        forgotten=[(name(topic), topic.partitions) for topic in message.forgotten_topics_data],
        rack_id=message.rack_id,
        cluster_id=message.cluster_id,
        replica_tags={
            (name(topic), partition.partition): ReplicaTags(partition.replica_directory_id, partition.high_watermark)
            for topic in message.topics
            for partition in topic.partitions
            if (partition.replica_directory_id, partition.high_watermark) != (ZERO_UUID, NO_WATERMARK)
        },
    )


def without_default_tags(view: FetchRequestView) -> FetchRequestView:
    """Tags may also spell out the defaults, or be unknown ones."""
    return view._replace(replica_tags={key: tags for key, tags in view.replica_tags.items() if tags != ReplicaTags()})


def decode_compiled(version: int, buffer: bytes) -> FetchRequestView | None:
    try:
        return view_of(decode(messages.FetchRequest, version, buffer), version)
    except MalformedMessageError:
        return None


def decode_by_hand(version: int, buffer: bytes) -> FetchRequestView | None:
    try:
        return without_default_tags(decode_fetch_request(memoryview(buffer), 0, version))
    except MalformedMessageError:
        return None


@pytest.mark.parametrize("version", VERSIONS)
def test_requests_are_decoded_like_the_compiled_codec(version: int) -> None:
    random = Random(version)
    for _ in range(30):
        message = request(version, random)
        for number, partition in enumerate(p for topic in message.topics for p in topic.partitions):
            partition.partition = number  # all differ, so that their tags do not meet under one key
        encoded = b"head" + encode(message, version)
        assert decode_fetch_request(memoryview(encoded), 4, version) == view_of(message, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_malformed_requests_are_rejected_like_the_compiled_codec(version: int) -> None:
    random = Random(version)
    for _ in range(150):
        message = request(version, random)
        message.topics = [fetch_topic(version, [fetch_partition(version, random)])]
        message.forgotten_topics_data = message.forgotten_topics_data[:1]
        encoded = bytearray(encode(message, version))
        for _ in range(random.choice([1, 2])):
            encoded[random.randrange(len(encoded))] = random.choice([0, 1, 2, 3, 0x7F, 0x80, 0xFF])
        damaged = bytes(encoded) + random.choice([b"", b"", b"\0"])
        assert decode_by_hand(version, damaged) == decode_compiled(version, damaged)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_truncated_request_is_rejected(version: int) -> None:
    message = request(version, Random(version))
    message.topics = [fetch_topic(version, [fetch_partition(version, Random(1))])]
    encoded = encode(message, version)
    for length in range(len(encoded)):
        with pytest.raises(MalformedMessageError):
            decode_fetch_request(memoryview(encoded)[:length], 0, version)


def joined(parts: list[bytes]) -> bytes:
    frame = b"".join(parts)
    assert int.from_bytes(frame[:4]) == len(frame) - 4
    return frame


def response_of(version: int, frame: bytes) -> messages.FetchResponse:
    correlation_id, position = decode_response_header(1, version, frame, 4)
    assert correlation_id == 77
    return decode(messages.FetchResponse, version, frame, position)


def partition_data(version: int, fetched: FetchedPartition) -> messages.PartitionData:
    data = messages.PartitionData(
        partition_index=fetched.partition,
        error_code=fetched.error_code,
        high_watermark=fetched.high_watermark,
        last_stable_offset=fetched.last_stable_offset,
        aborted_transactions=None
        if fetched.aborted is None
        else [messages.AbortedTransaction(*transaction) for transaction in fetched.aborted],
        records=b"".join(fetched.records_parts),
    )
    if version >= 5:
        data.log_start_offset = fetched.log_start_offset
    if version >= 11:
        data.preferred_read_replica = fetched.preferred_read_replica
    return data


def expected_response(
    version: int, topics: list[tuple[Topic, list[FetchedPartition]]], error_code: int, session_id: int
) -> messages.FetchResponse:
    responses = []
    for topic, partitions in topics:
        name, topic_id = (topic, ZERO_UUID) if isinstance(topic, str) else ("", topic)
        data = [partition_data(version, fetched) for fetched in partitions]
        responses.append(messages.FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=data))
    response = messages.FetchResponse(throttle_time_ms=9, responses=responses)
    if version >= 7:
        response.error_code, response.session_id = error_code, session_id
    return response


def fetched_partition(index: int, parts: list[bytes], aborted: list[tuple[int, int]] | None) -> FetchedPartition:
    return FetchedPartition(index, 0, 2**40, 2**39, 7, aborted, 4, sum(map(len, parts)), parts)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("shape", [[1], [], [0], [3], [1, 2], [130]])
def test_responses_are_encoded_like_the_compiled_codec(version: int, shape: list[int]) -> None:
    topic: Topic = "orders" if version < 13 else TOPIC_ID
    records: list[list[bytes]] = [[], [b"batch"], [b"a" * 300, b"b"]]
    aborted: list[list[tuple[int, int]] | None] = [None, [], [(1, 2), (3, 4)]]
    for parts, transactions in product(records, aborted):
        topics = [(topic, [fetched_partition(index, parts, transactions) for index in range(n)]) for n in shape]
        frame = joined(encode_fetch_response(version, 77, 9, 70, 123, topics))
        expected = expected_response(version, topics, 70, 123)
        assert response_of(version, frame) == expected
        assert frame.endswith(encode(expected, version))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("shape", [[1], [], [0], [1, 2], [130]])
def test_responses_are_the_same_in_slices(version: int, shape: list[int]) -> None:
    topic: Topic = "orders" if version < 13 else TOPIC_ID
    topics = [(topic, [fetched_partition(index, [b"batch"], [(1, 2)]) for index in range(n)]) for n in shape]
    endpoints = [NodeEndpoint(3, "host", 9092)]
    expected = encode_fetch_response(version, 77, 0, 0, 123, topics, node_endpoints=endpoints)
    assert joined(finished(encode_fetch_response_in_slices(version, 77, 123, topics, endpoints))) == joined(expected)


@pytest.mark.parametrize("version", VERSIONS)
def test_records_are_passed_on_unchanged(version: int) -> None:
    class Slice:
        """Stands for a part of a file, which only the connection reads."""

    slices = [Slice(), Slice()]
    topic: Topic = "orders" if version < 13 else TOPIC_ID
    fetched = FetchedPartition(0, 0, 9, 9, 0, None, -1, 1000, slices)
    parts = encode_fetch_response(version, 77, 0, 0, 0, [(topic, [fetched, fetched])])
    assert [part for part in parts if not isinstance(part, bytes)] == slices * 2
    own = sum(len(part) for part in parts if isinstance(part, bytes))
    assert int.from_bytes(parts[0][:4]) == own - 4 + 2 * 1000


@pytest.mark.parametrize("version", VERSIONS)
def test_no_records_are_empty_and_not_null(version: int) -> None:
    topic: Topic = "orders" if version < 13 else TOPIC_ID
    (frame,) = encode_fetch_response(version, 77, 0, 0, 0, [(topic, [fetched_partition(0, [], None)])])
    assert response_of(version, frame).responses[0].partitions[0].records == b""


@pytest.mark.parametrize("version", range(12, 19))
@pytest.mark.parametrize(
    "tags",
    [
        PartitionTags(),
        PartitionTags(diverging_epoch=EpochEnd(3, 400)),
        PartitionTags(current_leader=CurrentLeader(1, 2)),
        PartitionTags(snapshot_id=EpochEnd(5, 600)),
        PartitionTags(EpochEnd(3, 400), CurrentLeader(1, 2), EpochEnd(5, 600)),
    ],
)
def test_tagged_fields_of_a_response(version: int, tags: PartitionTags) -> None:
    topic: Topic = "orders" if version < 13 else TOPIC_ID
    topics = [(topic, [fetched_partition(0, [b"batch"], None)._replace(tags=tags)])]
    endpoints = [NodeEndpoint(1, "host", 9092, "rack")]
    frame = joined(encode_fetch_response(version, 77, 9, 0, 0, topics, node_endpoints=endpoints))
    expected = expected_response(version, topics, 0, 0)
    data = expected.responses[0].partitions[0]
    if tags.diverging_epoch:
        data.diverging_epoch = messages.EpochEndOffset(*tags.diverging_epoch)
    if tags.current_leader:
        data.current_leader = messages.LeaderIdAndEpoch(*tags.current_leader)
    if tags.snapshot_id:
        data.snapshot_id = messages.SnapshotId(tags.snapshot_id.end_offset, tags.snapshot_id.epoch)
    if version >= 16:
        expected.node_endpoints = [messages.NodeEndpoint(1, "host", 9092, "rack")]
    assert response_of(version, frame) == expected
    assert frame.endswith(encode(expected, version))
