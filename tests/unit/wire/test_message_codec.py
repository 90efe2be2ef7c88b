from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import pytest

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.codec import (
    MalformedMessageError,
    UnencodableMessageError,
    UnsupportedVersionError,
    decode,
    decode_from,
    encode,
)
from sskafka.wire.messages.offset_commit import OffsetCommitRequest
from sskafka.wire.schema import (
    Bytes,
    Float64,
    Int8,
    Int16,
    Int32,
    Records,
    String,
    UInt32,
    Uuid,
    data,
    ignorable,
    nullable,
    since,
    tagged,
    until,
)


@dataclass(slots=True)
class Leaf:
    number: Int32 = -1
    note: Annotated[String | None, nullable(since=2)] = ""


@dataclass(slots=True)
class Tree:
    """Legacy up to version 1, flexible from version 2 on."""

    SCHEMA: ClassVar = data(versions=(0, 3), flexible_from=2)

    small: Int8 = 0
    name: String = ""
    old: Annotated[Int16, until(0)] = 0
    fresh: Annotated[Int16, since(1), ignorable] = 7
    strict: Annotated[Int16, since(1)] = 0
    leaves: list[Leaf] = field(default_factory=list)
    numbers: list[Int32] | None = None
    ids: list[Uuid] = field(default_factory=list)
    leaf: Annotated[Leaf | None, since(2), ignorable] = None
    extra: Annotated[list[Int32], tagged(5, since=2), ignorable] = field(default_factory=list)
    leader: Annotated[Leaf, tagged(0, since=3)] = field(default_factory=Leaf)
    maybe: Annotated[Leaf | None, tagged(1, since=3)] = None
    records: Records | None = None


@dataclass(slots=True)
class Sized:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0)

    ratio: Float64 = 0.0
    unsigned: UInt32 = 0
    uuid: Uuid = ZERO_UUID
    content: Bytes = b""


def test_legacy_layout() -> None:
    tree = Tree(small=1, name="ab", old=2, leaves=[Leaf(3, "x")], ids=[bytes(16)])
    assert encode(tree, 0) == bytes.fromhex(
        "01"  # small
        "0002 6162"  # name
        "0002"  # old
        "00000001 00000003 0001 78"  # leaves
        "ffffffff"  # numbers: null
        "00000001 00000000000000000000000000000000"  # ids
        "ffffffff"  # records: null
    )


def test_flexible_layout() -> None:
    tree = Tree(small=1, name="ab", leaves=[Leaf(3, None)], numbers=[9], leaf=Leaf(4, "y"), records=b"zz")
    tree.leader = Leaf(5, "")
    tree.maybe = Leaf()
    tree.extra = [1, 2]
    assert encode(tree, 3) == bytes.fromhex(
        "01"  # small
        "03 6162"  # name
        "0007 0000"  # fresh, strict
        "02 00000003 00 00"  # leaves: number, null, no tags
        "02 00000009"  # numbers
        "01"  # ids
        "01 00000004 02 79 00"  # leaf: present, number, note, no tags
        "03 7a7a"  # records
        "03"  # three tagged fields, in the order of their tags
        "00 06 00000005 01 00"  # leader
        "01 07 01 ffffffff 01 00"  # maybe: present
        "05 09 03 00000001 00000002"  # extra
    )


@pytest.mark.parametrize("version", range(4))
def test_round_trip(version: int) -> None:
    tree = Tree(small=-1, name="ä" * 200, leaves=[Leaf(1, "a"), Leaf(2, "b")], numbers=list(range(200)), records=b"r")
    assert decode(Tree, version, encode(tree, version)) == tree


def test_fields_missing_in_a_version_have_their_defaults() -> None:
    decoded = decode(Tree, 0, encode(Tree(fresh=99, leaf=Leaf(1)), 0))
    assert decoded.fresh == 7
    assert decoded.leaf is None


def test_a_value_missing_in_a_version_is_rejected_unless_ignorable() -> None:
    with pytest.raises(UnencodableMessageError, match="strict is 1"):
        encode(Tree(strict=1), 0)
    with pytest.raises(UnencodableMessageError, match="leader"):
        encode(Tree(leader=Leaf(1)), 2)
    assert encode(Tree(fresh=1, extra=[1]), 0) == encode(Tree(), 0)


def test_null_is_rejected_where_the_version_does_not_allow_it() -> None:
    with pytest.raises(UnencodableMessageError, match="note cannot be null"):
        encode(Tree(leaves=[Leaf(1, None)]), 1)
    with pytest.raises(MalformedMessageError, match="note is null"):
        decode(Tree, 0, encode(Tree(leaves=[Leaf(1, "x")]), 0).replace(b"\x00\x01x", b"\xff\xff"))


@pytest.mark.parametrize(
    "message", [Sized(unsigned=-1), Sized(uuid=b"short"), Sized(ratio="text"), Sized(content=None), Tree(name=None)]
)
def test_errors_name_values_out_of_range(message: Sized | Tree) -> None:
    with pytest.raises(UnencodableMessageError, match=f"{type(message).__name__} v0"):
        encode(message, 0)


def test_versions_outside_the_schema() -> None:
    with pytest.raises(UnsupportedVersionError, match="Tree has versions 0 to 3, not 4"):
        encode(Tree(), 4)
    with pytest.raises(UnsupportedVersionError):
        decode(Tree, -1, b"")


def test_trailing_bytes() -> None:
    encoded = encode(Sized(), 0)
    with pytest.raises(MalformedMessageError, match="2 bytes after"):
        decode(Sized, 0, encoded + b"!!")
    assert decode(Sized, 0, encoded + b"!!", allow_trailing=True) == Sized()
    assert decode_from(Sized, 0, b"??" + encoded + b"!!", 2) == (Sized(), 2 + len(encoded))


def test_unknown_tagged_fields_are_skipped() -> None:
    encoded = encode(Sized(), 0)
    assert encoded[-1:] == b"\0"
    assert decode(Sized, 0, encoded[:-1] + bytes.fromhex("02 07 03 616263 08 00")) == Sized()


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ("01 07 04 616263", "more than are left"),
        ("ff ff ff ff 0f", "4294967295 tagged fields"),
        ("90 4e 00 00", "out of"),
        ("80 80 80 80 80 01", "longer than five bytes"),
    ],
)
def test_damaged_tagged_sections(section: str, problem: str) -> None:
    with pytest.raises(MalformedMessageError, match=problem):
        decode(Sized, 0, encode(Sized(), 0)[:-1] + bytes.fromhex(section))


def test_a_tagged_field_must_fill_its_size() -> None:
    encoded = encode(Tree(leader=Leaf(5)), 3)
    section = encoded.index(bytes.fromhex("0006 00000005 01 00"))
    with pytest.raises(MalformedMessageError, match="leader does not fill"):
        decode(Tree, 3, encoded[:section] + bytes.fromhex("0007 00000005 01 00 00"))


@pytest.mark.parametrize("count", ["7fffffff", "00000002"])
def test_counts_above_the_remaining_bytes_are_rejected_before_allocation(count: str) -> None:
    encoded = bytes.fromhex("01 0000 0000" + count + "00000003 0001 78")
    with pytest.raises(MalformedMessageError, match="leaves has"):
        decode(Tree, 0, encoded)


def test_text_must_be_utf_8() -> None:
    with pytest.raises(MalformedMessageError, match="utf-8"):
        decode(Tree, 0, b"\x01\x00\x02\xff\xfe" + bytes(32))


def test_records_are_a_view_of_the_input_and_bytes_a_copy() -> None:
    buffer = bytearray(encode(Tree(records=b"abc"), 0))
    records = decode(Tree, 0, memoryview(buffer)).records
    assert isinstance(records, memoryview)
    buffer[-3:] = b"xyz"
    assert records == b"xyz"
    content = decode(Sized, 0, encode(Sized(content=b"abc"), 0)).content
    assert type(content) is bytes


def test_default_lists_are_not_shared() -> None:
    encoded = encode(Tree(), 3)
    first, second = decode(Tree, 3, encoded), decode(Tree, 3, encoded)
    first.extra.append(1)
    first.leader.number = 9
    assert second == Tree()


def test_classes_outside_the_notation_are_rejected() -> None:
    @dataclass(slots=True)
    class Untyped:
        SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0)
        number: int = 0

    @dataclass(slots=True)
    class WithoutDefault:
        SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0)
        number: Int32

    with pytest.raises(TypeError, match=r"Untyped\.number has no wire type"):
        decode(Untyped, 0, b"")
    with pytest.raises(TypeError, match=r"WithoutDefault\.number has no default"):
        decode(WithoutDefault, 0, b"")


def test_strings_of_requests_have_the_legacy_maximum_length() -> None:
    """They may end up in records that have no room for more."""
    longest = OffsetCommitRequest(group_id="g" * 32_767)
    assert decode(OffsetCommitRequest, 9, encode(longest, 9)) == longest
    with pytest.raises(MalformedMessageError, match="32768 bytes"):
        decode(OffsetCommitRequest, 9, encode(OffsetCommitRequest(group_id="g" * 32_768), 9))
