"""A broker must be able to send every response in every version: a field that a version lacks is omitted, not rejected.

A few responses have a different structure in older versions, and omitting the newer fields would lose the content.
Their handlers choose the structure by version; those fields stay strict.
"""

from typing import Any

import pytest

from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.frames import error_frame
from sskafka.wire.apis import API_BY_KEY, Api
from sskafka.wire.codec import decode, encode
from sskafka.wire.layout import layout_of
from sskafka.wire.schema import Primitive

SHAPE_BY_VERSION = {
    "OffsetFetch": {"topics", "error_code", "groups"},
    "FindCoordinator": {"error_code", "error_message", "node_id", "host", "port", "coordinators"},
    "JoinGroup": {"skip_assignment"},
    "LeaveGroup": {"members"},
    "AddPartitionsToTxn": {"results_by_transaction", "results_by_topic_v3_and_below"},
}
SAMPLES: dict[str, Any] = {
    "bool": True,
    "string": "text",
    "bytes": b"bytes",
    "records": b"records",
    "uuid": bytes(range(16)),
    "float64": 1.5,
}
INTEGER = 7

APIS = pytest.mark.parametrize("api", API_BY_KEY.values(), ids=lambda api: api.name)


def versions_of(api: Api) -> range:
    return range(api.min_version, api.max_version + 1)


def filled(cls: type[Any], left_out: set[str]) -> Any:
    """An instance with a value other than the default in every field, and one element in every array."""
    values = {}
    for field in (field for fields in layout_of(cls, 0) for field in fields):
        if field.name not in left_out:
            element = field.element
            value = SAMPLES.get(element.name, INTEGER) if isinstance(element, Primitive) else filled(element, set())
            values[field.name] = [value] if field.is_array else value
    return cls(**values)


def shape_of(api: Api, version: int) -> set[str]:
    """The fields that a handler leaves alone because this version has no place for them."""
    absent = {field.name for field in layout_of(api.response_class(), version).absent}
    return SHAPE_BY_VERSION.get(api.name, set()) & absent


@APIS
def test_a_complete_response_is_encoded_in_every_version(api: Api) -> None:
    cls = api.response_class()
    for version in versions_of(api):
        encoded = encode(filled(cls, shape_of(api, version)), version)
        assert encode(decode(cls, version, encoded), version) == encoded


@APIS
def test_an_empty_response_is_encoded_in_every_version(api: Api) -> None:
    cls = api.response_class()
    for version in versions_of(api):
        assert decode(cls, version, encode(cls(), version)) == cls()


@APIS
def test_an_error_is_encoded_in_every_version_that_has_the_field(api: Api) -> None:
    for version in versions_of(api):
        fields = {field.name for field in layout_of(api.response_class(), version).plain}
        frame = error_frame(api.key, version, 1, ErrorCode.UNSUPPORTED_VERSION)
        assert (frame is not None) == ("error_code" in fields)
