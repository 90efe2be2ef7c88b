"""Interpret the notation of `schema`: from a dataclass to the fields of one version on the wire."""

import dataclasses
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeAlias, TypeVar, Union, get_args, get_origin

from sskafka.wire.schema import (
    ALL_VERSIONS,
    Ignorable,
    Nullable,
    Primitive,
    Tagged,
    Versions,
    since,
)

Mark = TypeVar("Mark")
Element: TypeAlias = Primitive | type[Any]
"""A primitive type, or the dataclass of a struct."""


class Field(NamedTuple):
    name: str
    element: Element
    is_array: bool
    versions: Versions
    nullable: Versions | None
    tag: int | None
    is_ignorable: bool
    default: Any
    """The default value; for arrays and structs, an instance to compare with."""

    @property
    def is_fixed(self) -> bool:
        """Whether its size is the same in every message, so that one `struct` can read it with adjacent fields."""
        return isinstance(self.element, Primitive) and self.element.is_fixed and not self.is_array and self.tag is None

    @property
    def is_struct(self) -> bool:
        return not self.is_array and not isinstance(self.element, Primitive)

    def is_nullable(self, version: int) -> bool:
        return self.nullable is not None and version in self.nullable


class Layout(NamedTuple):
    """One version of a struct: `plain` fields in wire order, `tagged` fields by tag, and `absent` fields."""

    plain: tuple[Field, ...]
    tagged: tuple[Field, ...]
    absent: tuple[Field, ...]

    def runs(self) -> Iterator[tuple[Field, ...]]:
        """Yield groups of adjacent fields of fixed size, and every other field by itself."""
        for is_fixed, fields in groupby(self.plain, key=lambda field: field.is_fixed):
            if is_fixed:
                yield tuple(fields)
            else:
                yield from ((field,) for field in fields)


def layout_of(cls: type[Any], version: int) -> Layout:
    fields = _fields_of(cls)  # type: ignore[arg-type]  # mypy takes no class for hashable
    present = [field for field in fields if version in field.versions]
    return Layout(
        plain=tuple(field for field in present if field.tag is None),
        tagged=tuple(sorted((field for field in present if field.tag is not None), key=lambda field: field.tag or 0)),
        absent=tuple(field for field in fields if version not in field.versions),
    )


def size_bytes_min(element: Element, version: int, flexible: bool) -> int:
    """Return the minimum size of an array element. It is never 0, so the remaining bytes bound every count."""
    if isinstance(element, Primitive):
        return element.size_bytes or _empty_size(element, flexible)
    plain = layout_of(element, version).plain
    return max(1, sum(_field_size_min(field, version, flexible) for field in plain) + flexible)


def _field_size_min(field: Field, version: int, flexible: bool) -> int:
    if field.is_array:
        return 1 if flexible else 4
    if field.is_struct and field.is_nullable(version):
        return 1
    return size_bytes_min(field.element, version, flexible)


def _empty_size(element: Primitive, flexible: bool) -> int:
    if flexible:
        return 1
    return 2 if element.name == "string" else 4


@cache
def _fields_of(cls: type[Any]) -> tuple[Field, ...]:
    return tuple(_read_field(cls, field) for field in dataclasses.fields(cls))


def _read_field(cls: type[Any], field: dataclasses.Field[Any]) -> Field:
    annotation, marks = _split_annotated(field.type)
    annotation, may_be_null = _split_optional(annotation)
    annotation, inner_marks = _split_annotated(annotation)
    is_array = get_origin(annotation) is list
    if is_array:
        annotation, inner_marks = _split_annotated(get_args(annotation)[0])
    tagged = _first(marks, Tagged)
    return Field(
        name=field.name,
        element=_element(cls, field.name, annotation, (*marks, *inner_marks)),
        is_array=is_array,
        versions=_versions(marks, tagged),
        nullable=_nullable(marks, may_be_null),
        tag=None if tagged is None else tagged.tag,
        is_ignorable=_first(marks, Ignorable) is not None,
        default=_default(cls, field),
    )


def _split_annotated(annotation: Any) -> tuple[Any, Sequence[object]]:
    if get_origin(annotation) is Annotated:
        return annotation.__origin__, annotation.__metadata__
    return annotation, ()


def _split_optional(annotation: Any) -> tuple[Any, bool]:
    if get_origin(annotation) not in {Union, UnionType}:
        return annotation, False
    arguments = get_args(annotation)
    others = [argument for argument in arguments if argument is not NoneType]
    return (others[0] if len(others) == 1 else annotation), len(others) < len(arguments)


def _element(cls: type[Any], name: str, annotation: Any, marks: Sequence[object]) -> Element:
    primitive = _first(marks, Primitive)
    if primitive is not None:
        return primitive
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        return annotation
    raise TypeError(f"{cls.__name__}.{name} has no wire type: {annotation!r}")


def _versions(marks: Sequence[object], tagged: Tagged | None) -> Versions:
    return _first(marks, Versions) or (ALL_VERSIONS if tagged is None else since(tagged.since))


def _nullable(marks: Sequence[object], may_be_null: bool) -> Versions | None:
    if not may_be_null:
        return None
    mark = _first(marks, Nullable)
    return ALL_VERSIONS if mark is None else mark.versions


def _default(cls: type[Any], field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    if field.default is dataclasses.MISSING:
        raise TypeError(f"{cls.__name__}.{field.name} has no default")
    return field.default


def _first(marks: Sequence[object], kind: type[Mark]) -> Mark | None:
    return next((mark for mark in marks if isinstance(mark, kind)), None)
