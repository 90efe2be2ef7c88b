import pytest

from sskafka.challenge.grammar import (
    BOOLEAN,
    COMPACT_NULLABLE_STRING,
    COMPACT_RECORDS,
    COMPACT_STRING,
    INT16,
    INT32,
    TAG_BUFFER,
    UUID,
    Array,
    Field,
    Fields,
    Nullable,
    Type,
    UnreadableAnswerError,
    read_answer,
)

TOPIC = Fields(name=COMPACT_STRING, codes=Array(INT16), tags=TAG_BUFFER)
ANSWER = Fields(id=INT32, topics=Array(TOPIC), cursor=Nullable(Fields(at=INT16)), tags=TAG_BUFFER)
WHOLE = b"\0\0\0\7" + b"\2" + b"\3ab" + b"\3\0\1\0\2" + b"\0" + b"\xff" + b"\1\5\2xy"


def test_every_field_has_its_location() -> None:
    assert read_answer(ANSWER, WHOLE).fields == (
        Field("id", "INT32", 7, 0, 4),
        Field("topics.length", "COMPACT_ARRAY", 1, 4, 5),
        Field("topics[0].name", "COMPACT_STRING", "ab", 5, 8),
        Field("topics[0].codes.length", "COMPACT_ARRAY", 2, 8, 9),
        Field("topics[0].codes[0]", "INT16", 1, 9, 11),
        Field("topics[0].codes[1]", "INT16", 2, 11, 13),
        Field("topics[0].tags", "TAG_BUFFER", {}, 13, 14),
        Field("cursor", "nullable struct", None, 14, 15),
        Field("tags", "TAG_BUFFER", {5: b"xy"}, 15, 20),
    )


@pytest.mark.parametrize("size", range(len(WHOLE)))
def test_every_truncation_is_reported_with_its_location(size: int) -> None:
    with pytest.raises(UnreadableAnswerError) as raised:
        read_answer(ANSWER, WHOLE[:size])
    assert raised.value.position <= size
    assert all(field.end <= size for field in raised.value.fields)


def test_bytes_after_the_response() -> None:
    with pytest.raises(UnreadableAnswerError, match="2 bytes follow"):
        read_answer(ANSWER, WHOLE + b"..")
    assert read_answer(Fields(id=INT32), WHOLE, prefix=True)["id"] == 7


@pytest.mark.parametrize(
    ("kind", "data", "value"),
    [
        (COMPACT_NULLABLE_STRING, b"\0", None),
        (COMPACT_RECORDS, b"\0", None),
        (COMPACT_RECORDS, b"\1", b""),
        (COMPACT_RECORDS, b"\x81\x01" + b"r" * 128, b"r" * 128),
        (BOOLEAN, b"\1", True),
        (UUID, bytes(range(16)), bytes(range(16))),
    ],
)
def test_values(kind: Type, data: bytes, value: object) -> None:
    answer = read_answer(Fields(one=kind), data)
    assert answer["one"] == value
    assert answer.find("other") is None


def test_a_nullable_struct_that_is_present() -> None:
    assert read_answer(Fields(cursor=Nullable(Fields(at=INT16))), b"\1\0\5")["cursor.at"] == 5


@pytest.mark.parametrize(
    ("kind", "data", "words"),
    [
        (COMPACT_STRING, b"\0", "null is not allowed"),
        (COMPACT_STRING, b"\2\xff", "not UTF-8"),
        (COMPACT_STRING, b"\x80\x80\x80\x80\x80\x01", "is too long"),
        (Array(INT16), b"\x7f\0", "has 126 elements, but only 1 bytes are left"),
        (Array(INT16, is_compact=False), b"\0\0\0\2\0\1\0", "needs 2 bytes, but only 1 are left"),
    ],
)
def test_invalid_responses_are_rejected(kind: Type, data: bytes, words: str) -> None:
    with pytest.raises(UnreadableAnswerError, match=words):
        read_answer(Fields(one=kind), data)
