"""Generate the source code of a decoder for one message version.

The source is one flat function `decode(buffer, position) -> (message, position)`. Structs are inlined, and adjacent
fields of fixed size are read with one `struct`. `buffer` is a memoryview of bytes.

Nothing is allocated for a length or count before it is checked against the remaining bytes and the bounds of the
message (`bounds`). Truncated input may also raise IndexError or struct.error, and invalid text UnicodeDecodeError;
`codec` turns these into MalformedMessageError.

For long messages there is a second form: `decode` is a generator that yields after every few kilobytes, so that the
caller can do other work in between, and returns the same result.
"""

import struct
from contextlib import AbstractContextManager
from typing import Any

from sskafka.wire.bounds import ARRAY_ELEMENTS_MAX
from sskafka.wire.errors import MalformedMessageError
from sskafka.wire.fields import TEXT_BYTES_MAX
from sskafka.wire.layout import Element, Field, Layout, layout_of, size_bytes_min
from sskafka.wire.schema import BYTES, STRING, UUID, Kind, Primitive
from sskafka.wire.source import SourceWriter
from sskafka.wire.varint import decode_uvarint, require_tag_count, skip_fields

SLICE_BYTES = 4096
"""Bytes that the generator form decodes before it yields; a byte may be an element, which costs about 0.2 us."""


def _refuse_null(field: str) -> None:
    raise MalformedMessageError(f"{field} is null")


def _refuse_length(field: str, length: int, left: int) -> None:
    raise MalformedMessageError(f"{field} has {length} bytes or elements, but only {left} bytes are left")


def _refuse_count(field: str, count: int) -> None:
    raise MalformedMessageError(f"{field} has {count} elements; at most {ARRAY_ELEMENTS_MAX} are allowed")


def _refuse_elements(field: str, elements_max: int) -> None:
    raise MalformedMessageError(f"with {field} the message has more than {elements_max} elements")


def _refuse_text(length: int) -> None:
    raise MalformedMessageError(f"a string has {length} bytes; at most {TEXT_BYTES_MAX} are allowed")


def _refuse_tag_size(field: str) -> None:
    raise MalformedMessageError(f"tagged field {field} does not fill its size")


_GLOBALS = {
    "uvarint": decode_uvarint,
    "skip_fields": skip_fields,
    "require_tag_count": require_tag_count,
    "unpack": struct.unpack_from,
    "unpack_int16": struct.Struct(">h").unpack_from,
    "unpack_int32": struct.Struct(">i").unpack_from,
    "refuse_null": _refuse_null,
    "refuse_length": _refuse_length,
    "refuse_count": _refuse_count,
    "refuse_elements": _refuse_elements,
    "refuse_text": _refuse_text,
    "refuse_tag_size": _refuse_tag_size,
}


def write_decoder(cls: type[Any], version: int, flexible: bool) -> SourceWriter:
    return _DecoderWriter(cls, version, flexible).write(cls)


def write_sliced_decoder(cls: type[Any], version: int, flexible: bool) -> SourceWriter:
    return _DecoderWriter(cls, version, flexible, in_slices=True).write(cls)


class _DecoderWriter:
    def __init__(self, cls: type[Any], version: int, flexible: bool, in_slices: bool = False) -> None:
        self._version = version
        self._flexible = flexible
        # Strings of requests have the length that older versions allow at most, because records may store them.
        self._limits_text = cls.SCHEMA.kind is Kind.REQUEST
        self._elements_max = cls.SCHEMA.elements_max
        self._in_slices = in_slices
        self._out = SourceWriter(_GLOBALS)

    def write(self, cls: type[Any]) -> SourceWriter:
        with self._out.block("def decode(buffer, position):"):
            self._out.line("end = len(buffer)")
            if self._elements_max is not None:
                self._out.line(f"room = {self._elements_max}")
            if self._in_slices:
                self._out.line("yield")
                self._out.line("mark = position")
            self._out.line(f"return {self._struct(cls)}, position")
        return self._out

    def _struct(self, cls: type[Any]) -> str:
        """Write code that reads the fields into variables; return the expression that builds the struct."""
        layout = layout_of(cls, self._version)
        variables = {field.name: self._out.fresh("v") for field in (*layout.plain, *layout.tagged)}
        for run in layout.runs():
            if run[0].is_fixed:
                self._fixed_run(run, variables)
            else:
                self._field(run[0], variables[run[0].name])
        if self._flexible:
            self._tagged_section(layout, variables)
        arguments = ", ".join(f"{name}={variable}" for name, variable in variables.items())
        return f"{self._out.constant(cls.__name__, cls)}({arguments})"

    def _fixed_run(self, run: tuple[Field, ...], variables: dict[str, str]) -> None:
        elements = [field.element for field in run if isinstance(field.element, Primitive)]
        unpacker = self._out.unpacker("".join(element.format for element in elements))
        targets = ", ".join(variables[field.name] for field in run)
        self._out.line(f"{targets}, = {unpacker}(buffer, position)")
        self._out.line(f"position += {sum(element.size_bytes for element in elements)}")

    def _field(self, field: Field, target: str) -> None:
        if field.is_array:
            self._array(field, target)
        elif field.is_struct:
            self._struct_field(field, target)
        else:
            self._primitive(field, target)

    def _primitive(self, field: Field, target: str) -> None:
        assert isinstance(field.element, Primitive)
        if field.element.is_fixed:
            self._out.line(f"{target}, = {self._out.unpacker(field.element.format)}(buffer, position)")
            self._out.line(f"position += {field.element.size_bytes}")
            return
        length = self._length(short=field.element == STRING)
        with self._unless_null(field, target, length):
            self._slice(field, field.element, target, length)

    def _slice(self, field: Field, element: Primitive, target: str, length: str) -> None:
        with self._out.block(f"if {length} > end - position:"):
            self._out.line(f"refuse_length({field.name!r}, {length}, end - position)")
        slice_ = f"buffer[position:position + {length}]"
        match element.name:
            case STRING.name:
                slice_ += ".tobytes().decode()"
            case BYTES.name:
                slice_ += ".tobytes()"
        self._out.line(f"{target} = {slice_}")
        self._out.line(f"position += {length}")

    def _length(self, short: bool) -> str:
        """Write code that reads a length or count into a variable; negative means null. Return the variable."""
        length = self._out.fresh("n")
        if self._flexible:
            self._out.line(f"{length} = buffer[position] - 1")
            with self._out.block(f"if {length} < 127:"):
                self._out.line("position += 1")
            with self._out.block("else:"):
                self._out.line(f"{length}, position = uvarint(buffer, position)")
                self._out.line(f"{length} -= 1")
                if short and self._limits_text:
                    self._out.line(f"if {length} > {TEXT_BYTES_MAX}: refuse_text({length})")
        else:
            self._out.line(f"{length}, = unpack_int{16 if short else 32}(buffer, position)")
            self._out.line(f"position += {2 if short else 4}")
        return length

    def _unless_null(self, field: Field, target: str, length: str) -> AbstractContextManager[None]:
        """Write the handling of a negative length; the returned block is for all other lengths."""
        with self._out.block(f"if {length} < 0:"):
            if field.is_nullable(self._version):
                self._out.line(f"{target} = None")
            else:
                self._out.line(f"refuse_null({field.name!r})")
        return self._out.block("else:")

    def _array(self, field: Field, target: str) -> None:
        count = self._length(short=False)
        with self._unless_null(field, target, count):
            smallest = size_bytes_min(field.element, self._version, self._flexible)
            with self._out.block(f"if {count} * {smallest} > end - position:"):
                self._out.line(f"refuse_length({field.name!r}, {count}, end - position)")
            with self._out.block(f"if {count} > {ARRAY_ELEMENTS_MAX}:"):
                self._out.line(f"refuse_count({field.name!r}, {count})")
            self._use_room(field.name, count)
            self._elements(field, field.element, target, count)

    def _use_room(self, name: str, count: str) -> None:
        if self._elements_max is None:
            return
        self._out.line(f"room -= {count}")
        with self._out.block("if room < 0:"):
            self._out.line(f"refuse_elements({name!r}, {self._elements_max})")

    def _elements(self, field: Field, element: Element, target: str, count: str) -> None:
        if isinstance(element, Primitive) and element.is_fixed and element != UUID:
            self._out.line(f"{target} = list(unpack(f'>{{{count}}}{element.format}', buffer, position))")
            self._out.line(f"position += {count} * {element.size_bytes}")
            return
        self._out.line(f"{target} = []")
        with self._out.block(f"for _ in range({count}):"):
            if isinstance(element, Primitive):
                item = self._out.fresh("v")
                self._primitive(field._replace(is_array=False, nullable=None), item)
            else:
                item = self._struct(element)
            self._out.line(f"{target}.append({item})")
            if self._in_slices:
                with self._out.block("if position > mark:"):
                    self._out.line("yield")
                    self._out.line(f"mark = position + {SLICE_BYTES}")

    def _struct_field(self, field: Field, target: str) -> None:
        assert isinstance(field.element, type)
        if field.nullable is None:
            self._out.line(f"{target} = {self._struct(field.element)}")
            return
        marker = self._out.fresh("n")
        self._out.line(f"{marker} = buffer[position]")
        self._out.line("position += 1")
        # Null is a negative byte, but in a tagged field it is 0.
        with self._unless_null(field, target, f"127 - {marker}" if field.tag is None else f"{marker} - 1"):
            self._out.line(f"{target} = {self._struct(field.element)}")

    def _tagged_section(self, layout: Layout, variables: dict[str, str]) -> None:
        for field in layout.tagged:
            self._out.line(f"{variables[field.name]} = {self._default(field)}")
        with self._out.block("if buffer[position] == 0:"):
            self._out.line("position += 1")
        with self._out.block("else:"):
            count = self._out.fresh("count")
            self._out.line(f"{count}, position = uvarint(buffer, position)")
            self._out.line(f"require_tag_count({count})")
            self._use_room("tagged fields", count)
            if layout.tagged:
                self._tagged_fields(layout, variables, count)
            else:
                self._out.line(f"position = skip_fields(buffer, position, {count})")

    def _default(self, field: Field) -> str:
        if field.default is None:
            return "None"
        if field.is_array:
            return "[]"
        if field.is_struct:
            return f"{self._out.constant('Default', field.element)}()"
        return repr(field.default)

    def _tagged_fields(self, layout: Layout, variables: dict[str, str], count: str) -> None:
        tag, size, stop = (self._out.fresh(prefix) for prefix in ("tag", "size", "stop"))
        with self._out.block(f"for _ in range({count}):"):
            self._out.line(f"{tag}, position = uvarint(buffer, position)")
            self._out.line(f"{size}, position = uvarint(buffer, position)")
            self._out.line(f"{stop} = position + {size}")
            with self._out.block(f"if {stop} > end:"):
                self._out.line(f"refuse_length('a tagged field', {size}, end - position)")
            for field in layout.tagged:
                with self._out.block(f"if {tag} == {field.tag}:"):
                    self._field(field, variables[field.name])
                    with self._out.block(f"if position != {stop}:"):
                        self._out.line(f"refuse_tag_size({field.name!r})")
            self._out.line(f"position = {stop}")
