"""The requests of the challenge as bytes, each with the grammar of its response.

    size int32 | api key int16 | api version int16 | correlation id int32 | client id: int16 length, text | TAG_BUFFER
    then the message

All of them are flexible versions: strings and arrays start with the varint of their length plus one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from struct import Struct

from sskafka.challenge import responses
from sskafka.challenge.grammar import Type

API_VERSIONS, DESCRIBE_TOPIC_PARTITIONS, FETCH, PRODUCE = 18, 75, 1, 0
API_NAMES = {
    API_VERSIONS: "ApiVersions",
    DESCRIBE_TOPIC_PARTITIONS: "DescribeTopicPartitions",
    FETCH: "Fetch",
    PRODUCE: "Produce",
}

_HEADER = Struct(">hhih")
_INT8, _INT16, _INT32, _INT64 = Struct(">b"), Struct(">h"), Struct(">i"), Struct(">q")
_CLIENT_ID = b"sskafka-challenge"
_NO_TAGS = b"\0"
_NULL_STRUCT = b"\xff"

_RECORDS_BYTES_MAX = 1 << 20
_WAIT_MS_MAX = 500
_TIMEOUT_MS = 10_000


@dataclass(frozen=True, slots=True)
class Request:
    api_key: int
    version: int
    body: bytes
    answer: Type
    prefix: bool = False
    """Whether only the start of the response is checked."""

    @property
    def name(self) -> str:
        return f"{API_NAMES[self.api_key]} v{self.version}"

    def frame(self, correlation_id: int) -> bytes:
        header = _HEADER.pack(self.api_key, self.version, correlation_id, len(_CLIENT_ID)) + _CLIENT_ID + _NO_TAGS
        return _INT32.pack(len(header) + len(self.body)) + header + self.body


def api_versions(version: int = 4, answer: Type = responses.API_VERSIONS_V4, *, prefix: bool = False) -> Request:
    body = _string("sskafka-challenge") + _string("1.0") + _NO_TAGS
    return Request(API_VERSIONS, version, body, answer, prefix)


def describe_topic_partitions(
    names: Iterable[str], partition_limit: int = 100, cursor: tuple[str, int] | None = None
) -> Request:
    topics = _array(_string(name) + _NO_TAGS for name in names)
    start = _NULL_STRUCT if cursor is None else b"\1" + _string(cursor[0]) + _INT32.pack(cursor[1]) + _NO_TAGS
    body = topics + _INT32.pack(partition_limit) + start + _NO_TAGS
    return Request(DESCRIBE_TOPIC_PARTITIONS, 0, body, responses.DESCRIBE_TOPIC_PARTITIONS_V0)


def fetch(wanted: Mapping[bytes, Iterable[int]], offset: int = 0) -> Request:
    """Fetch partitions by topic id, each from `offset` on."""
    topics = _array(
        topic_id + _array(_fetched_partition(partition, offset) for partition in partitions) + _NO_TAGS
        for topic_id, partitions in wanted.items()
    )
    limits = _INT32.pack(_WAIT_MS_MAX) + _INT32.pack(1) + _INT32.pack(50 * _RECORDS_BYTES_MAX)
    read_uncommitted, no_session = _INT8.pack(0), _INT32.pack(0) + _INT32.pack(-1)
    forgotten, rack = _array(()), _string("")
    body = limits + read_uncommitted + no_session + topics + forgotten + rack + _NO_TAGS
    return Request(FETCH, 16, body, responses.FETCH_V16)


def _fetched_partition(partition: int, offset: int) -> bytes:
    no_epoch, no_start_offset = _INT32.pack(-1), _INT64.pack(-1)
    where = _INT32.pack(partition) + no_epoch + _INT64.pack(offset) + no_epoch + no_start_offset
    return where + _INT32.pack(_RECORDS_BYTES_MAX) + _NO_TAGS


def produce(batches: Mapping[str, Mapping[int, bytes]]) -> Request:
    """Produce `batches`, by topic and partition."""
    topics = _array(
        _string(name) + _array(_INT32.pack(p) + _bytes(batch) + _NO_TAGS for p, batch in partitions.items()) + _NO_TAGS
        for name, partitions in batches.items()
    )
    no_transaction = b"\0"
    body = no_transaction + _INT16.pack(-1) + _INT32.pack(_TIMEOUT_MS) + topics + _NO_TAGS
    return Request(PRODUCE, 11, body, responses.PRODUCE_V11)


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _bytes(data: bytes) -> bytes:
    return _varint(len(data) + 1) + data


def _string(text: str) -> bytes:
    return _bytes(text.encode())


def _array(elements: Iterable[bytes]) -> bytes:
    parts = list(elements)
    return _varint(len(parts) + 1) + b"".join(parts)
