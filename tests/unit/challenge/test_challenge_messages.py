"""Compare the tester's own encoding with the broker's codec, which is checked against other implementations."""

import pytest

from sskafka.challenge import requests
from sskafka.challenge.comparison import bytes_difference, differences
from sskafka.challenge.grammar import Answer, read_answer
from sskafka.challenge.requests import Request
from sskafka.model.ids import ZERO_UUID
from sskafka.wire.apis import API_BY_KEY
from sskafka.wire.codec import decode, encode
from sskafka.wire.header import decode_request_header, encode_response_header
from sskafka.wire.messages import api_versions, describe_topic_partitions, fetch, produce
from sskafka.wire.schema import Message

TOPIC_ID = bytes(range(16))
REQUESTS: list[tuple[Request, Message]] = [
    (requests.api_versions(), api_versions.ApiVersionsRequest("sskafka-challenge", "1.0")),
    (
        requests.describe_topic_partitions(["a", "b"], 7, ("b", 3)),
        describe_topic_partitions.DescribeTopicPartitionsRequest(
            [describe_topic_partitions.TopicRequest("a"), describe_topic_partitions.TopicRequest("b")],
            7,
            describe_topic_partitions.Cursor("b", 3),
        ),
    ),
    (requests.describe_topic_partitions([]), describe_topic_partitions.DescribeTopicPartitionsRequest([], 100)),
    (
        requests.fetch({TOPIC_ID: [0, 5]}, 9),
        fetch.FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=50 << 20,
            topics=[
                fetch.FetchTopic(
                    topic_id=TOPIC_ID,
                    partitions=[
                        fetch.FetchPartition(number, fetch_offset=9, partition_max_bytes=1 << 20) for number in (0, 5)
                    ],
                )
            ],
        ),
    ),
    (
        requests.produce({"t": {1: b"r" * 200}}),
        produce.ProduceRequest(
            acks=-1,
            timeout_ms=10_000,
            topic_data=[produce.TopicProduceData("t", partition_data=[produce.PartitionProduceData(1, b"r" * 200)])],
        ),
    ),
]


@pytest.mark.parametrize(("request_", "message"), REQUESTS, ids=lambda one: type(one).__name__)
def test_requests(request_: Request, message: Message) -> None:
    frame = request_.frame(correlation_id=77)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    header = decode_request_header(frame, 4)
    assert (header.api_key, header.api_version, header.correlation_id) == (request_.api_key, request_.version, 77)
    found = decode(API_BY_KEY[request_.api_key].request_class(), request_.version, frame, header.body_position)
    assert found == message


def answer_to(request: Request, message: Message) -> Answer:
    data = encode_response_header(request.api_key, request.version, 77) + encode(message, request.version)
    return read_answer(request.answer, data)


def test_answers() -> None:
    listed = api_versions.ApiVersionsResponse(0, [api_versions.ApiVersion(18, 0, 4)], finalized_features_epoch=3)
    assert answer_to(requests.api_versions(), listed)["api_keys[0].max_version"] == 4
    partition = describe_topic_partitions.DescribeTopicPartitionsResponsePartition(0, 3, 1, 2, [1, 2], [1], [], None)
    topic = describe_topic_partitions.DescribeTopicPartitionsResponseTopic(3, None, ZERO_UUID, False, [partition])
    described = describe_topic_partitions.DescribeTopicPartitionsResponse(
        0, [topic], describe_topic_partitions.Cursor("x", 4)
    )
    answer = answer_to(requests.describe_topic_partitions([]), described)
    assert answer["topics[0].partitions[0].replica_nodes[1]"] == 2
    assert answer["topics[0].partitions[0].last_known_elr.length"] == -1
    assert answer["next_cursor.partition_index"] == 4
    fetched = fetch.PartitionData(0, 100, 5, aborted_transactions=[fetch.AbortedTransaction(7, 8)], records=b"rr")
    responses = [fetch.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[fetched])]
    answer = answer_to(requests.fetch({}), fetch.FetchResponse(responses=responses))
    assert answer["responses[0].partitions[0].aborted_transactions[0].first_offset"] == 8
    assert answer["responses[0].partitions[0].records"] == b"rr"
    errors = [produce.BatchIndexAndErrorMessage(1, "bad")]
    produced = produce.PartitionProduceResponse(4, 3, -1, -1, -1, errors, "worse", produce.LeaderIdAndEpoch(1, 2))
    topics = [produce.TopicProduceResponse("t", partition_responses=[produced])]
    answer = answer_to(requests.produce({}), produce.ProduceResponse(responses=topics))
    assert answer["responses[0].partition_responses[0].record_errors[0].error_message"] == "bad"


def test_differences_are_described() -> None:
    fetched = fetch.PartitionData(0, 6, 5, records=b"\1" * 20)
    responses = [fetch.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[fetched])]
    answer = answer_to(requests.fetch({}), fetch.FetchResponse(responses=responses))
    at = "responses[0].partitions[0]"
    expected = {
        "correlation_id": 77,
        "responses[0].topic_id": ZERO_UUID,
        f"{at}.error_code": 0,
        f"{at}.high_watermark": frozenset({7, 8}),
        f"{at}.records": b"\1" * 19 + b"\2",
        "responses[1].topic_id": TOPIC_ID,
    }
    twenty = f"20 bytes ({' '.join(['01'] * 16)} ...)"
    parting = "they differ from byte 19 on: 0x01 instead of 0x02"
    assert list(differences(answer, expected)) == [
        "responses[0].topic_id (UUID, bytes 16..31): AAECAwQFBgcICQoLDA0ODw instead of AAAAAAAAAAAAAAAAAAAAAA",
        f"{at}.error_code (INT16, bytes 37..38): 6 (NOT_LEADER_OR_FOLLOWER) instead of 0 (NONE)",
        f"{at}.high_watermark (INT64, bytes 39..46): 5 instead of 7 or 8",
        f"{at}.records (COMPACT_RECORDS, bytes 68..88): {twenty} instead of {twenty}; {parting}",
        "responses[1].topic_id: missing, expected AAECAwQFBgcICQoLDA0ODw",
    ]
    assert bytes_difference(b"ab", b"abc") == "the first 2 bytes are the same"
