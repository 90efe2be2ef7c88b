"""Bounds of decoders: nothing is allocated for counts that no client needs. Long messages are decoded in slices."""

from collections.abc import Generator
from typing import Any, TypeVar

import pytest
from largest_requests import LargestRequest, largest_requests
from test_response_versions import APIS, filled, versions_of

from sskafka.wire.apis import Api, ApiKey
from sskafka.wire.bounds import ARRAY_ELEMENTS_MAX, TAGGED_FIELDS_MAX
from sskafka.wire.codec import (
    MalformedMessageError,
    decode,
    decode_in_slices,
    encode,
    encode_element,
    encode_in_slices,
)
from sskafka.wire.fetch import decode_fetch_request
from sskafka.wire.layout import layout_of
from sskafka.wire.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from sskafka.wire.messages.heartbeat import HeartbeatRequest
from sskafka.wire.produce import decode_produce_request
from sskafka.wire.varint import encode_uvarint

T = TypeVar("T")
REQUESTS = list(largest_requests(names=("same",)))


def result_of(steps: Generator[None, None, T]) -> tuple[T, int]:
    """The result of the steps, and their number."""
    count = 0
    try:
        while True:
            next(steps)
            count += 1
    except StopIteration as stop:
        return stop.value, count


@pytest.mark.parametrize("request_", REQUESTS, ids=str)
def test_one_element_more_than_the_bound_is_refused(request_: LargestRequest) -> None:
    body = memoryview(request_.body(more=1))
    decode_request: Any = {ApiKey.PRODUCE: decode_produce_request, ApiKey.FETCH: decode_fetch_request}.get(
        request_.api.key, lambda body, _, version: decode(request_.api.request_class(), version, body)
    )
    with pytest.raises(MalformedMessageError, match=r"more than|at most"):
        decode_request(body, 0, request_.version)


def test_the_largest_request_is_decoded() -> None:
    (largest,) = (each for each in REQUESTS if each.api.key == ApiKey.DESCRIBE_GROUPS)
    message = decode(DescribeGroupsRequest, largest.version, largest.body())
    assert len(message.groups) == largest.api.elements_max


@pytest.mark.parametrize("key", [ApiKey.PRODUCE, ApiKey.FETCH])
def test_produce_and_fetch_have_room_for_many_partitions(key: ApiKey) -> None:
    largest = next(each for each in REQUESTS if each.api.key == key and len(each.path) == 2)
    body = memoryview(largest.body(more=-1))
    decode_request: Any = decode_produce_request if key == ApiKey.PRODUCE else decode_fetch_request
    ((_, partitions),) = decode_request(body, 0, largest.version).topics
    assert len(partitions) == largest.api.elements_max - 2


def test_counts_of_single_arrays_are_bounded_in_responses_too() -> None:
    too_many = bytes(4) + encode_uvarint(ARRAY_ELEMENTS_MAX + 2) + bytes(20 * ARRAY_ELEMENTS_MAX)
    with pytest.raises(MalformedMessageError, match="at most 1000000"):
        decode(DescribeGroupsResponse, 6, too_many)


def test_tagged_fields_are_bounded() -> None:
    start = encode(HeartbeatRequest(), 4)[:-1]
    fields = b"\x20\x00" * (TAGGED_FIELDS_MAX + 1)
    assert decode(HeartbeatRequest, 4, start + encode_uvarint(TAGGED_FIELDS_MAX) + fields[2:]) == HeartbeatRequest()
    with pytest.raises(MalformedMessageError, match="10001 tagged fields"):
        decode(HeartbeatRequest, 4, start + encode_uvarint(TAGGED_FIELDS_MAX + 1) + fields)


@APIS
def test_slices_are_the_same_messages(api: Api) -> None:
    for version in versions_of(api):
        for cls in (api.request_class(), api.response_class()):
            absent = {field.name for field in layout_of(cls, version).absent}
            try:
                encoded = encode(filled(cls, absent), version)
            except Exception:  # fields of nested structs that this version does not have
                encoded = encode(cls(), version)
            message = decode(cls, version, encoded)
            assert result_of(decode_in_slices(cls, version, encoded))[0] == message
            assert b"".join(result_of(encode_in_slices(message, version))[0]) == encode(message, version)


def test_long_messages_come_in_many_slices() -> None:
    response = DescribeGroupsResponse(groups=[DescribedGroup(group_id=f"g{i}") for i in range(10_000)])
    encoded, encoding_steps = result_of(encode_in_slices(response, 6))
    decoded, decoding_steps = result_of(decode_in_slices(DescribeGroupsResponse, 6, b"".join(encoded)))
    assert decoded == response
    assert encoding_steps > 10
    assert decoding_steps > 10


def test_elements_may_be_encoded_beforehand() -> None:
    groups: list[Any] = [DescribedGroup(group_id=f"g{i}") for i in range(3)]
    expected = encode(DescribeGroupsResponse(groups=list(groups)), 6)
    groups[0] = encode_element(groups[0], 6, flexible=True)
    assert b"".join(result_of(encode_in_slices(DescribeGroupsResponse(groups=groups), 6))[0]) == expected
