"""Compare a response with its expected values."""

from collections.abc import Iterator, Mapping

from sskafka.challenge.grammar import Answer
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import uuid_text

_SHOWN_BYTES_MAX = 16


def differences(answer: Answer, expected: Mapping[str, object]) -> Iterator[str]:
    """Yield a line for each path of `expected` whose field is missing or has another value.

    An expected value may be a set, of which any value is accepted."""
    for path, wanted in expected.items():
        field = answer.find(path)
        if field is None:
            yield f"{path}: missing, expected {_shown(path, wanted)}"
        elif field.value not in wanted if isinstance(wanted, frozenset) else field.value != wanted:
            yield f"{path} ({field.location}): {_difference(path, field.value, wanted)}"


def _difference(path: str, found: object, wanted: object) -> str:
    text = f"{_shown(path, found)} instead of {_shown(path, wanted)}"
    if isinstance(found, bytes) and isinstance(wanted, bytes) and not path.endswith("topic_id"):
        text += f"; {bytes_difference(found, wanted)}"
    return text


def bytes_difference(found: bytes, wanted: bytes) -> str:
    """Describe where two byte strings differ."""
    at = next((index for index, (a, b) in enumerate(zip(found, wanted, strict=False)) if a != b), None)
    if at is None:
        return f"the first {min(len(found), len(wanted))} bytes are the same"
    return f"they differ from byte {at} on: 0x{found[at]:02x} instead of 0x{wanted[at]:02x}"


def _shown(path: str, value: object) -> str:
    if isinstance(value, frozenset):
        return " or ".join(sorted(_shown(path, one) for one in value))
    if isinstance(value, bytes):
        return uuid_text(value) if path.endswith("topic_id") else _shown_bytes(value)
    if isinstance(value, int) and path.endswith("error_code"):
        return f"{value} ({_error_name(value)})"
    return "null" if value is None else repr(value) if isinstance(value, str) else str(value)


def _shown_bytes(data: bytes) -> str:
    if len(data) <= _SHOWN_BYTES_MAX:
        return data.hex(" ") or "no bytes"
    return f"{len(data)} bytes ({data[:_SHOWN_BYTES_MAX].hex(' ')} ...)"


def _error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return "unknown error"
