"""Answers as plain trees. Values that must correspond but cannot be equal are named in the order of their appearance.

topic_id: b"\\x8f..."     ->  "topic id 1"       wherever the same id comes back, the same name comes back
timestamp: 1763299999123  ->  "now"              fixed timestamps of records stay as they are
records: b"..."           ->  a list of batches, each with its records; checksums are checked, not compared
"""

import re
import time
from typing import Any

from differential.exchange import Dropped
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ZERO_UUID
from sskafka.records.batch import BatchHeader, CorruptBatchError, crc_matches, iter_headers, whole_batches
from sskafka.records.record import decode_records
from sskafka.wire.layout import Field, layout_of
from sskafka.wire.schema import BYTES, RECORDS, UUID, Primitive

NOW_MS_RANGE = 3_600_000

_UUID_TEXT = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_BASE64_ID = re.compile(r"(?<![\w-])(?=[\w-]*[A-Z])[\w-]{22}(?![\w-])")
_PATH = re.compile(r"/[^\s,:]*?/(?:Apache-Kafka|SSKafka)/(?:broker-\d/)?data\b")
_HOST_PORT = re.compile(r"\b127\.0\.0\.1:(\d+)\b")

# Numbers that one system chooses: field name -> what it is called. Negative ones and 0 mean "none" and stay.
_CHOSEN_NUMBERS = {
    "producer_id": "producer id",
    "port": "port",
    "session_id": "fetch session",
    "subscription_id": "subscription",
}
_CHOSEN_TEXTS = {"cluster_id": "cluster id"}


class Names:
    """What the values of one system's answers are called, in the order in which they were first seen."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, Any], str] = {}
        self._counts: dict[str, int] = {}

    def name(self, kind: str, value: Any) -> str:
        if (kind, value) not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[kind, value] = f"{kind} {self._counts[kind]}"
        return self._names[kind, value]


class Normaliser:
    """Turns the answers of one system into trees, in the order of the exchanges."""

    def __init__(self) -> None:
        self._names = Names()
        self._now_ms = time.time() * 1000

    def tree(self, answer: Any, version: int) -> Any:
        if isinstance(answer, Dropped):
            return self._text(answer.what)
        if isinstance(answer, bytes):
            return answer[4:].hex()  # after the correlation id
        return self._struct(answer, version)

    def _struct(self, message: Any, version: int) -> dict[str, Any]:
        layout = layout_of(type(message), version)
        return {
            field.name: self._field(field, getattr(message, field.name), version)
            for field in layout.plain + layout.tagged
        }

    def _field(self, field: Field, value: Any, version: int) -> Any:
        if value is None:
            return None
        if field.is_array:
            return [self._element(field, one, version) for one in _in_order(field, value, version)]
        return self._element(field, value, version)

    def _element(self, field: Field, value: Any, version: int) -> Any:
        match field.element:
            case Primitive() if field.element == UUID:
                return self._uuid(field.name, value)
            case Primitive() if field.element == RECORDS:
                return self._records(bytes(value))
            case Primitive() if field.element == BYTES:
                return value.hex()
            case Primitive():
                return self._plain(field.name, value)
        return None if value is None else self._struct(value, version)

    def _uuid(self, name: str, value: bytes) -> str:
        reserved = value[:15] == ZERO_UUID[:15]
        return value.hex() if reserved else self._names.name("id", value)

    def _plain(self, name: str, value: Any) -> Any:
        if isinstance(value, str):
            if name == "member_id" and _BASE64_ID.fullmatch(value):
                return self._names.name("member id", value)
            return (
                self._names.name(_CHOSEN_TEXTS[name], value) if name in _CHOSEN_TEXTS and value else self._text(value)
            )
        if isinstance(value, bool) or not isinstance(value, int):
            return value
        if name.endswith("error_code"):
            return _error_name(value)
        if name == "controller_id" and value > 0:
            return "a broker"  # Apache Kafka names any broker: each of them forwards to the controller
        if name == "usable_bytes" and value > 0:
            return "some bytes"  # the disk is shared and fills while the tests run
        if name in _CHOSEN_NUMBERS and (value > 0 or (name == "producer_id" and value == 0)):
            return self._names.name(_CHOSEN_NUMBERS[name], value)
        if ("timestamp" in name or "time_ms" in name) and abs(value - self._now_ms) < NOW_MS_RANGE:
            return "now"
        return value

    def _text(self, text: str) -> str:
        """Ids, ports and directories inside of sentences."""
        text = _UUID_TEXT.sub(lambda found: self._names.name("uuid", found[0]), text)
        text = _PATH.sub(lambda found: self._names.name("directory", found[0]), text)
        text = _HOST_PORT.sub(lambda found: f"127.0.0.1:{self._names.name('port', int(found[1]))}", text)
        return _BASE64_ID.sub(lambda found: self._names.name("id text", found[0]), text)

    def _records(self, data: bytes) -> list[Any]:
        """The batches; the last one may be cut, and then its size alone can be compared."""
        complete = bytes(whole_batches(memoryview(data)))
        batches: list[Any] = [self._batch(complete, position, header) for position, header in iter_headers(complete)]
        return batches + [f"{len(data) - len(complete)} bytes of a further batch"] * (len(data) > len(complete))

    def _batch(self, data: bytes, position: int, header: BatchHeader) -> dict[str, Any]:
        described = {name: self._plain(name, value) for name, value in header._asdict().items()}
        described["crc"] = "good" if crc_matches(data, header, position) else "bad"
        try:
            described["records"] = [
                {**record._asdict(), "timestamp": self._plain("timestamp", record.timestamp)}
                for record in decode_records(data, header, position)
            ]
        except CorruptBatchError as error:
            described["records"] = str(error)
        return described


def _error_name(code: int) -> str:
    return ErrorCode(code).name if code in ErrorCode._value2member_map_ else str(code)


# Lists of plain values whose order Apache Kafka does not define.
UNORDERED = {"isr_nodes", "offline_replicas", "eligible_leader_replicas"}
_BLANK_IN_ORDER = {*_CHOSEN_NUMBERS, *_CHOSEN_TEXTS, "log_dir", "controller_id"}


def _in_order(field: Field, elements: list[Any], version: int) -> list[Any]:
    """Structs sorted by what they say, apart from values that a system chooses: clients find them by key."""
    if not isinstance(field.element, Primitive):
        return sorted(elements, key=lambda element: repr(_without_choices(element, version)))
    return sorted(elements) if field.name in UNORDERED else elements


def _without_choices(message: Any, version: int) -> list[Any]:
    layout = layout_of(type(message), version)
    fields = [
        field for field in layout.plain + layout.tagged if field.element != UUID and field.name not in _BLANK_IN_ORDER
    ]
    return [_comparable(field, getattr(message, field.name), version) for field in sorted(fields, key=_names_first)]


def _names_first(field: Field) -> bool:
    return field.is_array or field.name.endswith(("error_code", "error_message"))


def _comparable(field: Field, value: Any, version: int) -> Any:
    if isinstance(field.element, Primitive) or value is None:
        return _BASE64_ID.sub("", _UUID_TEXT.sub("", value)) if isinstance(value, str) else value
    if field.is_array:
        return sorted((_without_choices(one, version) for one in value), key=repr)
    return _without_choices(value, version)
