"""Request messages from plain values: nested dicts and lists take the place of nested message classes."""

from typing import Any

from sskafka.wire.apis import API_BY_KEY, Api
from sskafka.wire.layout import Field, layout_of
from sskafka.wire.schema import Primitive

API_BY_NAME: dict[str, Api] = {api.name: api for api in API_BY_KEY.values()}


def build(api: str, **fields: Any) -> Any:
    """The request of an API with the given fields; others keep their defaults."""
    return _build(API_BY_NAME[api].request_class(), fields)


def _build(cls: type[Any], values: dict[str, Any]) -> Any:
    known = {field.name: field for field in all_fields(cls)}
    unknown = values.keys() - known.keys()
    assert not unknown, f"{cls.__name__} has no {sorted(unknown)}; it has {sorted(known)}"
    return cls(**{name: _value(known[name], value) for name, value in values.items()})


def _value(field: Field, value: Any) -> Any:
    if isinstance(field.element, Primitive) or value is None:
        return value
    if field.is_array:
        return [_build(field.element, one) if isinstance(one, dict) else one for one in value]
    return _build(field.element, value) if isinstance(value, dict) else value


def all_fields(cls: type[Any]) -> tuple[Field, ...]:
    """The fields of all versions of a message."""
    layout = layout_of(cls, 0)
    return layout.plain + layout.tagged + layout.absent
