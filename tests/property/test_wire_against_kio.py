"""The codec against kio, another implementation of the same protocol, over every API key and version that both have.

Random messages are built twice, in our classes and in kio's; both must encode to the same bytes, and ours must decode
them to what it started from.
"""

import io
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

import pytest
from kio.index import load_entity_schema, load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_writer
from kio.static.constants import EntityType

from sskafka.wire.apis import API_BY_KEY
from sskafka.wire.codec import MalformedMessageError, decode, encode
from sskafka.wire.layout import Field, layout_of
from sskafka.wire.messages import consumer_protocol, control_records
from sskafka.wire.schema import Primitive

EXAMPLES = 6
TRUNCATIONS = 12
KIO_ERROR_CODES = [code.value for code in KioErrorCode]

DATA_MESSAGES = {
    "consumer_protocol_subscription": consumer_protocol.ConsumerProtocolSubscription,
    "consumer_protocol_assignment": consumer_protocol.ConsumerProtocolAssignment,
    "leader_change_message": control_records.LeaderChangeMessage,
    "snapshot_header_record": control_records.SnapshotHeaderRecord,
    "snapshot_footer_record": control_records.SnapshotFooterRecord,
    "k_raft_version_record": control_records.KRaftVersionRecord,
    "end_txn_marker": control_records.EndTxnMarker,
}

Pair = tuple[Any, Any]
"""The same value for us and for kio."""


class PairMaker:
    """Random messages of one version, for us and for kio at once."""

    def __init__(self, random: Random, version: int) -> None:
        self._random = random
        self._version = version

    def struct(self, cls: type[Any], kio_class: type[Any]) -> Pair:
        layout = layout_of(cls, self._version)
        present = {field.name: field for field in (*layout.plain, *layout.tagged)}
        ours = [present[field.name] for field in fields(cls) if field.name in present]
        theirs = fields(kio_class)
        assert [_comparable(field.name) for field in ours] == [_comparable(field.name) for field in theirs], cls
        pairs = [self._field(field, kio_field) for field, kio_field in zip(ours, theirs, strict=True)]
        message = cls(**{field.name: pair[0] for field, pair in zip(ours, pairs, strict=True)})
        kio_message = kio_class(**{field.name: pair[1] for field, pair in zip(theirs, pairs, strict=True)})
        return message, kio_message

    def _field(self, field: Field, kio_field: Any) -> Pair:
        kio_default = kio_field.default
        if field.tag is not None and self._random.random() < 0.3:
            return field.default, _kio_default(field, kio_default)
        if field.is_nullable(self._version) and field.tag is None and self._random.random() < 0.3:
            return None, None
        if field.is_array:
            pairs = [self._element(field, kio_field) for _ in range(self._random.choice([0, 1, 2, 3]))]
            return [pair[0] for pair in pairs], tuple(pair[1] for pair in pairs)
        return self._element(field, kio_field)

    def _element(self, field: Field, kio_field: Any) -> Pair:
        if isinstance(field.element, Primitive):
            return self._primitive(field.element, kio_field.metadata["kafka_type"])
        return self.struct(field.element, _struct_class(kio_field.type))

    def _primitive(self, element: Primitive, kio_type: str) -> Pair:
        random = self._random
        match kio_type:
            case "error_code":
                code = random.choice(KIO_ERROR_CODES)
                return code, KioErrorCode(code)
            case "timedelta_i32" | "timedelta_i64":
                milliseconds = random.choice([0, 1, 500, 2**31 - 1, random.randrange(2**31)])
                return milliseconds, timedelta(milliseconds=milliseconds)
            case "datetime_i64":
                seconds = random.randrange(2**31)
                return seconds * 1000, datetime.fromtimestamp(seconds, UTC)
            case "uuid":
                uuid = random.randbytes(16)
                return uuid, UUID(bytes=uuid)
            case "string":
                text = "".join(random.choices("abz09._-äß漢🙂 ", k=random.choice([0, 1, 7, 126, 127, 128, 300])))
                return text, text
            case "bytes" | "records":
                data = random.randbytes(random.choice([0, 1, 100, 127, 128, 20_000]))
                return data, data
            case "bool":
                return (value := random.random() < 0.5), value
            case "float64":
                return (value := random.uniform(-1e9, 1e9)), value
        return (number := self._integer(kio_type, element.size_bytes * 8)), number

    def _integer(self, kio_type: str, bits: int) -> int:
        low, high = (0, 2**bits - 1) if kio_type.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return self._random.choice([low, -1 if low < 0 else 1, 0, 1, high, self._random.randint(low, high)])


def _comparable(name: str) -> str:
    """kio drops the unit of times, shadows no builtins, and splits KRaft."""
    return name.removesuffix("_ms").removesuffix("_").replace("k_raft", "kraft")


def _kio_default(field: Field, kio_default: Any) -> Any:
    """What kio takes for the default of a tagged field; it declares none for arrays."""
    if field.is_array:
        return None if field.default is None else ()
    return kio_default


def _struct_class(annotation: Any) -> type[Any]:
    candidates = getattr(annotation, "__args__", (annotation,))
    return next(_struct_class(a) if hasattr(a, "__args__") else a for a in candidates if a not in (type(None), ...))


def _encode_with_kio(message: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(message))(buffer, message)
    return buffer.getvalue()


def _check_version(cls: type[Any], kio_class: type[Any], version: int) -> None:
    random = Random(f"{cls.__name__} v{version}")
    for _ in range(EXAMPLES):
        message, kio_message = PairMaker(random, version).struct(cls, kio_class)
        encoded = encode(message, version)
        assert encoded == _encode_with_kio(kio_message), message
        assert decode(cls, version, encoded) == message
        _check_damage(cls, version, encoded, random)


def _check_damage(cls: type[Any], version: int, encoded: bytes, random: Random) -> None:
    """A cut never passes; other damage may, but raises nothing except what it should."""
    for _ in range(TRUNCATIONS):
        if encoded:
            with pytest.raises(MalformedMessageError):
                decode(cls, version, encoded[: random.randrange(len(encoded))])
        damaged = bytearray(encoded)
        for position in random.sample(range(len(damaged)), min(3, len(damaged))):
            damaged[position] = random.choice([0, 0x7F, 0x80, 0xFF, random.randrange(256)])
        for bad in (bytes(damaged), random.randbytes(random.randrange(64))):
            with suppress(MalformedMessageError):
                decode(cls, version, bad)


def _shared_versions(name: str, versions: range) -> Iterator[int]:
    return (version for version in versions if version in schema_name_map[name])


@pytest.mark.parametrize("key", sorted(API_BY_KEY.keys() & api_key_map.keys()))
@pytest.mark.parametrize("kind", ["request", "response"])
def test_every_version_of_an_api_equals_kio(key: int, kind: str) -> None:
    api = API_BY_KEY[key]
    cls = api.request_class() if kind == "request" else api.response_class()
    load: Callable[[int, int], Any] = load_request_schema if kind == "request" else load_response_schema
    versions = list(_shared_versions(api_key_map[key], range(api.min_version, api.max_version + 1)))
    assert versions
    for version in versions:
        _check_version(cls, load(key, version), version)


@pytest.mark.parametrize("name", sorted(DATA_MESSAGES))
def test_stored_messages_equal_kio(name: str) -> None:
    cls = DATA_MESSAGES[name]
    for version in _shared_versions(name, range(cls.SCHEMA.versions.first, cls.SCHEMA.versions.last + 1)):
        _check_version(cls, load_entity_schema(name, version, EntityType.data), version)


def test_kio_knows_most_of_our_apis() -> None:
    assert len(API_BY_KEY.keys() & api_key_map.keys()) >= 85
