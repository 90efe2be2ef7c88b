"""The largest requests that the bounds of the decoders let pass, for every array of every request of the API table."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from sskafka.wire.apis import API_BY_KEY, Api, ApiKey
from sskafka.wire.codec import encode
from sskafka.wire.layout import Field, layout_of
from sskafka.wire.schema import Primitive

Path = tuple[str, ...]


class LargestRequest(NamedTuple):
    api: Api
    version: int
    path: Path
    """Names of the arrays from the message inwards; the last one has all elements that are allowed."""
    names: tuple[str, ...]
    """Values of the strings in its elements: one for all, or none to give each its own."""

    def __str__(self) -> str:
        return f"{self.api.name} v{self.version} {'.'.join(self.path)}{' same' if self.names else ''}"

    def body(self, more: int = 0) -> bytes:
        """Encode the request, with `more` elements than are allowed."""
        count = self.api.elements_max - len(self.path) + 1 + more
        message = _filled(self.api.request_class(), self.version, self.path, count, 0, self.names)
        if self.api.key == ApiKey.PRODUCE:
            message.acks = 1  # with 0 there would be no response
        return encode(message, self.version)


def largest_requests(versions: str = "last", names: tuple[str, ...] = ()) -> Iterator[LargestRequest]:
    for api in API_BY_KEY.values():
        for version in {api.max_version} if versions == "last" else {api.min_version, api.max_version}:
            for path in array_paths(api.request_class(), version):
                yield LargestRequest(api, version, path, names)


def array_paths(cls: type[Any], version: int) -> Iterator[Path]:
    for field in _fields(cls, version):
        inner = None if isinstance(field.element, Primitive) else field.element
        if field.is_array:
            yield (field.name,)
        if inner is not None:
            yield from ((field.name, *path) for path in array_paths(inner, version) if field.is_array)


def _fields(cls: type[Any], version: int) -> tuple[Field, ...]:
    layout = layout_of(cls, version)
    return (*layout.plain, *layout.tagged)


def _filled(cls: type[Any], version: int, path: Path, count: int, number: int, names: tuple[str, ...]) -> Any:
    """Return an instance whose array at `path` has `count` elements; arrays on the way there have one."""
    values: dict[str, Any] = {}
    for field in _fields(cls, version):
        if path and field.name == path[0]:
            number_of = count if len(path) == 1 else 1
            if len(names) == 1:  # all elements are the same
                values[field.name] = [_element(field, version, path[1:], count, 0, names)] * number_of
            else:
                values[field.name] = [_element(field, version, path[1:], count, i, names) for i in range(number_of)]
        elif not field.is_array and isinstance(field.element, Primitive):
            values[field.name] = _value(field.element, number, names)
    return cls(**values)


def _element(field: Field, version: int, path: Path, count: int, number: int, names: tuple[str, ...]) -> Any:
    if isinstance(field.element, Primitive):
        return _value(field.element, number, names)
    return _filled(field.element, version, path, count, number, names)


def _value(element: Primitive, number: int, names: tuple[str, ...]) -> Any:
    match element.name:
        case "string":
            return names[number % len(names)] if names else f"n{number}"
        case "bytes" | "records":
            return b""
        case "uuid":
            return (number + 1).to_bytes(16, "big")
        case "bool":
            return False
        case "float64":
            return 0.0
        case "int8":
            return 2 if not names else 0
        case _:
            return 0 if names else number % 30_000
