"""A request that is handled piece by piece gets the same response as one that is handled at once."""

import asyncio
from collections.abc import Generator
from typing import Any

import pytest
from steps import finished

from sskafka.servers.kafka import request_pieces
from sskafka.servers.kafka.request_pieces import Pieces, handle_in_pieces, pieces_of
from sskafka.wire.apis import API_BY_KEY, ApiKey
from sskafka.wire.codec import decode, encode, encode_in_slices
from sskafka.wire.errors import MalformedMessageError
from sskafka.wire.layout import layout_of
from sskafka.wire.messages.describe_groups import DescribeGroupsRequest
from sskafka.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from sskafka.wire.messages.describe_transactions import DescribeTransactionsRequest
from sskafka.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from sskafka.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

VERSION = 9
Steps = Generator["asyncio.Future[Any] | None", None, Any]


def answer(message: OffsetFetchRequest) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        groups=[
            OffsetFetchResponseGroup(
                group.group_id,
                [
                    OffsetFetchResponseTopics(
                        topic.name,
                        partitions=[
                            OffsetFetchResponsePartitions(index, index * 2) for index in topic.partition_indexes
                        ],
                    )
                    for topic in group.topics or ()
                ],
            )
            for group in message.groups
        ]
    )


def in_pieces(message: OffsetFetchRequest, calls: list[OffsetFetchRequest]) -> OffsetFetchResponse:
    def call(piece: OffsetFetchRequest) -> Steps:
        calls.append(piece)
        yield from ()
        return answer(piece)

    pieces = pieces_of(ApiKey.OFFSET_FETCH, VERSION)
    assert pieces is not None
    assert pieces.is_long(message)
    response = finished(handle_in_pieces(message, VERSION, pieces, call))
    encoded = b"".join(finished(encode_in_slices(response, VERSION)))
    return decode(OffsetFetchResponse, VERSION, encoded)


def group(number: int, topics: int, partitions: int) -> OffsetFetchRequestGroup:
    return OffsetFetchRequestGroup(
        f"g{number}",
        topics=[OffsetFetchRequestTopics(f"t{i}", partition_indexes=list(range(partitions))) for i in range(topics)],
    )


ALL_KINDS = [group(0, 3, 700), group(1, 0, 0), group(2, 50, 40), group(3, 1, 9000), group(4, 1, 1)]


@pytest.mark.parametrize(
    "groups",
    [
        [group(i, 1, 1) for i in range(1000)],
        [group(0, 1000, 2)],
        [group(0, 1, 5000)],
        ALL_KINDS,
    ],
    ids=["many groups", "many topics", "many partitions", "all kinds"],
)
def test_the_response_is_that_of_the_whole_request(groups: list[OffsetFetchRequestGroup]) -> None:
    message = OffsetFetchRequest(groups=groups)
    calls: list[OffsetFetchRequest] = []
    assert encode(in_pieces(message, calls), VERSION) == encode(answer(message), VERSION)
    assert len(calls) > 3
    assert message.groups == groups, "the request is as it was"


def test_short_requests_are_not_split() -> None:
    pieces = pieces_of(ApiKey.OFFSET_FETCH, VERSION)
    assert pieces is not None
    assert not pieces.is_long(OffsetFetchRequest(groups=[group(0, 2, 2)]))


def test_a_request_for_everything_is_long() -> None:
    every, some = OffsetFetchRequestGroup("g", topics=None), group(0, 2, 2)
    calls: list[OffsetFetchRequest] = []
    assert len(in_pieces(OffsetFetchRequest(groups=[some, every]), calls).groups) == 2
    assert len(calls) == 1
    older = pieces_of(ApiKey.OFFSET_FETCH, 7)
    assert older is not None
    assert older.is_long(OffsetFetchRequest("g", topics=None))
    assert not older.is_long(OffsetFetchRequest("g", topics=[]))


def test_some_hundreds_of_members_leave_at_once() -> None:
    pieces = pieces_of(ApiKey.LEAVE_GROUP, 5)
    assert pieces is not None
    assert not pieces.is_long(LeaveGroupRequest(members=[MemberIdentity("m")] * 300))
    assert pieces.is_long(LeaveGroupRequest(members=[MemberIdentity("m")] * 301))
    assert pieces_of(ApiKey.LEAVE_GROUP, 2) is None


def test_responses_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_pieces, "RESPONSE_BYTES_MAX", 10_000)
    with pytest.raises(MalformedMessageError, match="more than 10000 bytes"):
        in_pieces(OffsetFetchRequest(groups=[group(i, 1, 5) for i in range(1000)]), [])


@pytest.mark.parametrize(
    "groups", [[group(0, 1, 5000)], [group(0, 1000, 2)], ALL_KINDS], ids=["many partitions", "many topics", "all kinds"]
)
def test_the_bound_is_that_of_the_whole_response(
    groups: list[OffsetFetchRequestGroup], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partitions of one topic once counted when the topic was finished: those of the last one never did."""
    message = OffsetFetchRequest(groups=groups)
    size = len(encode(answer(message), VERSION))
    monkeypatch.setattr(request_pieces, "RESPONSE_BYTES_MAX", size)
    in_pieces(message, [])
    monkeypatch.setattr(request_pieces, "RESPONSE_BYTES_MAX", 4 * size // 5)
    with pytest.raises(MalformedMessageError):
        in_pieces(message, [])


HEAVY = {
    ApiKey.DESCRIBE_GROUPS: DescribeGroupsRequest(groups=["g"] * 3),
    ApiKey.DESCRIBE_PRODUCERS: DescribeProducersRequest([TopicRequest("t", [0, 0]), TopicRequest("t", [0])]),
    ApiKey.DESCRIBE_TRANSACTIONS: DescribeTransactionsRequest(["id"] * 3),
}


@pytest.mark.parametrize("key", HEAVY, ids=lambda key: key.name)
def test_elements_that_may_take_a_turn_are_handled_one_by_one(key: ApiKey) -> None:
    """A request that repeats a large group, partition or transaction 15 times once took 0.1 to 0.2 s in one turn."""
    api, message = API_BY_KEY[key], HEAVY[key]
    pieces = pieces_of(key, api.max_version)
    assert pieces is not None
    assert pieces.is_long(message)
    calls: list[Any] = []

    def call(piece: Any) -> Steps:
        calls.append(piece)
        yield from ()
        return api.response_class()()

    finished(handle_in_pieces(message, api.max_version, pieces, call))
    assert len(calls) == 3
    assert not pieces.is_long(calls[0]), "requests about one are answered at once"


@pytest.mark.parametrize("api", API_BY_KEY.values(), ids=lambda api: api.name)
def test_paths_name_lists_of_the_messages(api: Any) -> None:
    for version in range(api.min_version, api.max_version + 1):
        pieces = pieces_of(api.key, version)
        if pieces is not None:
            check_path(api.request_class(), pieces.requested)
            check_path(api.response_class(), pieces.answered)


def check_path(cls: Any, path: Pieces | tuple[str, ...]) -> None:
    for name in path:
        (field,) = (field for fields in layout_of(cls, 0) for field in fields if field.name == name)
        assert field.is_array
        cls = field.element
