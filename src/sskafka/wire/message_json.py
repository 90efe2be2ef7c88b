"""Messages as JSON in the format of Kafka's tools: camelCase names, base64 ids, tagged fields if not default."""

import dataclasses
from base64 import b64encode
from typing import Any

from sskafka.model.ids import uuid_text
from sskafka.wire.layout import Field, layout_of
from sskafka.wire.schema import UUID


def message_json(message: Any, version: int) -> dict[str, Any]:
    layout = layout_of(type(message), version)
    tagged = [field for field in layout.tagged if getattr(message, field.name) != field.default]
    shown = {field.name: field for field in (*layout.plain, *tagged)}
    return {
        _camel_case(field.name): _field_json(shown[field.name], getattr(message, field.name), version)
        for field in dataclasses.fields(message)
        if field.name in shown
    }


def _field_json(field: Field, value: Any, version: int) -> Any:
    if field.is_array and value is not None:
        return [_value_json(field, item, version) for item in value]
    return _value_json(field, value, version)


def _value_json(field: Field, value: Any, version: int) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        return uuid_text(bytes(value)) if field.element is UUID else b64encode(value).decode()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return message_json(value, version)


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
