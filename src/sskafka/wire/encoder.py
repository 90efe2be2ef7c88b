"""Generate the source code of an encoder for one message version.

The source is one flat function `encode(message) -> bytes` that collects parts in a list and joins them. Structs are
inlined, and adjacent fields of fixed size are written with one `struct`.

For long messages there is a second form: `encode` is a generator that yields after every SLICE_PARTS parts, so that the
caller can do other work in between, and returns the message as a list of bytes. In arrays of structs it takes elements
that are encoded already, by the encoder of `write_element_encoder`, which takes such elements, too.

Both forms copy an `EncodedArray` of a flexible version.
"""

import struct
from contextlib import AbstractContextManager
from typing import Any

from sskafka.wire.encoded_array import EncodedArray
from sskafka.wire.errors import UnencodableMessageError
from sskafka.wire.layout import Field, Layout, layout_of
from sskafka.wire.schema import STRING, UUID, Primitive
from sskafka.wire.source import SourceWriter
from sskafka.wire.varint import encode_uvarint

SLICE_PARTS = 2000


def _refuse_value(field: str, value: object) -> None:
    raise UnencodableMessageError(f"{field} is {value!r}, but this version does not have the field")


def _refuse_null(field: str) -> None:
    raise UnencodableMessageError(f"{field} cannot be null in this version")


def _refuse_uuid(field: str, value: bytes) -> None:
    raise UnencodableMessageError(f"{field} has {len(value)} bytes; a uuid has 16")


# A nullable struct is preceded by a byte that tells whether it is null.
PRESENT_STRUCT = b"\x01"
NULL_STRUCT = b"\xff"
NULL_TAGGED_STRUCT = b"\x00"

_GLOBALS = {
    "uvarint": encode_uvarint,
    "pack": struct.pack,
    "pack_int16": struct.Struct(">h").pack,
    "pack_int32": struct.Struct(">i").pack,
    "EncodedArray": EncodedArray,
    "refuse_value": _refuse_value,
    "refuse_null": _refuse_null,
    "refuse_uuid": _refuse_uuid,
}


def write_encoder(cls: type[Any], version: int, flexible: bool) -> SourceWriter:
    return _EncoderWriter(version, flexible).write(cls)


def write_element_encoder(cls: type[Any], version: int, flexible: bool) -> SourceWriter:
    """Write the encoder of a struct that is an element of a message of this version."""
    return _EncoderWriter(version, flexible, takes_encoded=True).write(cls)


def write_sliced_encoder(cls: type[Any], version: int, flexible: bool) -> SourceWriter:
    return _EncoderWriter(version, flexible, takes_encoded=True, in_slices=True).write(cls)


class _EncoderWriter:
    def __init__(self, version: int, flexible: bool, takes_encoded: bool = False, in_slices: bool = False) -> None:
        self._version = version
        self._flexible = flexible
        self._takes_encoded = takes_encoded
        self._in_slices = in_slices
        self._out = SourceWriter(_GLOBALS)
        self._add = "add"

    def write(self, cls: type[Any]) -> SourceWriter:
        with self._out.block("def encode(message):"):
            self._out.line("parts = []")
            self._out.line("add = parts.append")
            if self._in_slices:
                self._out.line("yield")
                self._out.line("joined = []")
            self._struct(cls, "message")
            if self._in_slices:
                self._out.line("joined.append(b''.join(parts))")
            self._out.line("return joined" if self._in_slices else "return b''.join(parts)")
        return self._out

    def _emit(self, expression: str) -> None:
        self._out.line(f"{self._add}({expression})")

    def _struct(self, cls: type[Any], source: str) -> None:
        layout = layout_of(cls, self._version)
        for field in layout.absent:
            self._refuse_unless_default(field, source)
        for run in layout.runs():
            if run[0].is_fixed:
                self._fixed_run(run, source)
            else:
                self._field(run[0], source)
        if self._flexible:
            self._tagged_section(layout, source)

    def _refuse_unless_default(self, field: Field, source: str) -> None:
        if field.is_ignorable:
            return
        value = f"{source}.{field.name}"
        with self._out.block(f"if {self._differs(field, value)}:"):
            self._out.line(f"refuse_value({field.name!r}, {value})")

    def _differs(self, field: Field, value: str) -> str:
        if field.default is None:
            return f"{value} is not None"
        return f"{value} != {self._out.constant('default', field.default)}"

    def _fixed_run(self, run: tuple[Field, ...], source: str) -> None:
        for field in run:
            if field.element == UUID:
                self._check_uuid(field, f"{source}.{field.name}")
        packer = self._out.packer(
            "".join(field.element.format for field in run if isinstance(field.element, Primitive))
        )
        self._emit(f"{packer}({', '.join(f'{source}.{field.name}' for field in run)})")

    def _check_uuid(self, field: Field, value: str) -> None:
        """Write a length check; `struct` would silently pad or truncate."""
        with self._out.block(f"if len({value}) != 16:"):
            self._out.line(f"refuse_uuid({field.name!r}, {value})")

    def _field(self, field: Field, source: str) -> None:
        value = self._out.fresh("v")
        self._out.line(f"{value} = {source}.{field.name}")
        if field.is_array:
            self._array(field, value)
        elif field.is_struct:
            self._struct_field(field, value)
        else:
            self._primitive(field, value)

    def _primitive(self, field: Field, value: str) -> None:
        assert isinstance(field.element, Primitive)
        if field.element.is_fixed:
            if field.element == UUID:
                self._check_uuid(field, value)
            self._emit(f"{self._out.packer(field.element.format)}({value})")
            return
        with self._unless_null(field, value, short=field.element == STRING):
            if field.element == STRING:
                self._out.line(f"{value} = {value}.encode()")
            self._length(value, short=field.element == STRING)
            self._emit(value)

    def _length(self, value: str, short: bool) -> None:
        if self._flexible:
            self._emit(f"uvarint(len({value}) + 1)")
        else:
            self._emit(f"pack_int{16 if short else 32}(len({value}))")

    def _unless_null(self, field: Field, value: str, short: bool) -> AbstractContextManager[None]:
        """Write the handling of None; the returned block is for all other values."""
        with self._out.block(f"if {value} is None:"):
            if not field.is_nullable(self._version):
                self._out.line(f"refuse_null({field.name!r})")
            elif self._flexible:
                self._emit(r"b'\0'")
            else:
                self._emit(repr(b"\xff\xff" if short else b"\xff\xff\xff\xff"))
        return self._out.block("else:")

    def _array(self, field: Field, value: str) -> None:
        element = field.element
        if isinstance(element, Primitive) and element.is_fixed and element != UUID:
            with self._unless_null(field, value, short=False):
                self._length(value, short=False)
                self._emit(f"pack(f'>{{len({value})}}{element.format}', *{value})")
        elif self._flexible:
            with self._out.block(f"if type({value}) is EncodedArray:"):
                self._emit(f"{value}.encoded")
            with self._out.block("else:"):
                self._elements(field, value)
        else:
            self._elements(field, value)

    def _elements(self, field: Field, value: str) -> None:
        with self._unless_null(field, value, short=False):
            self._length(value, short=False)
            element = field.element
            item = self._out.fresh("e")
            with self._out.block(f"for {item} in {value}:"):
                if isinstance(element, Primitive):
                    self._primitive(field._replace(is_array=False, nullable=None), item)
                elif self._takes_encoded:
                    with self._out.block(f"if type({item}) is bytes:"):
                        self._emit(item)
                    with self._out.block("else:"):
                        self._struct(element, item)
                else:
                    self._struct(element, item)
                if self._in_slices:
                    self._maybe_yield()

    def _maybe_yield(self) -> None:
        with self._out.block(f"if len(parts) > {SLICE_PARTS}:"):
            self._out.line("joined.append(b''.join(parts))")
            self._out.line("parts.clear()")
            self._out.line("yield")

    def _struct_field(self, field: Field, value: str) -> None:
        assert isinstance(field.element, type)
        if field.nullable is None:
            self._struct(field.element, value)
            return
        with self._out.block(f"if {value} is None:"):
            if field.is_nullable(self._version):
                self._emit(repr(NULL_STRUCT if field.tag is None else NULL_TAGGED_STRUCT))
            else:
                self._out.line(f"refuse_null({field.name!r})")
        with self._out.block("else:"):
            self._emit(repr(PRESENT_STRUCT))
            self._struct(field.element, value)

    def _tagged_section(self, layout: Layout, source: str) -> None:
        if not layout.tagged:
            self._emit(r"b'\0'")
            return
        tagged = self._out.fresh("tagged")
        self._out.line(f"{tagged} = []")
        for field in layout.tagged:
            with self._out.block(f"if {self._differs(field, f'{source}.{field.name}')}:"):
                self._tagged_field(field, source, tagged)
        self._emit(f"uvarint(len({tagged}))")
        with self._out.block(f"if {tagged}:"):
            self._emit(f"b''.join({tagged})")

    def _tagged_field(self, field: Field, source: str, tagged: str) -> None:
        parts, outer = self._out.fresh("parts"), self._add
        self._out.line(f"{parts} = []")
        self._add = f"{parts}.append"
        self._field(field, source)
        self._add = outer
        self._out.line(f"{parts} = b''.join({parts})")
        assert field.tag is not None
        self._out.line(f"{tagged}.append({encode_uvarint(field.tag)!r} + uvarint(len({parts})) + {parts})")
