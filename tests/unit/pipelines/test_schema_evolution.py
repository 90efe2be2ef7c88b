"""Which types of rows fit into the types of a table."""

import pytest
from pyspark.sql.types import StructType

from sskafka.pipelines.runner.schema_evolution import fits


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        ("byte", "long", True),
        ("long", "integer", False),
        ("float", "double", True),
        ("integer", "double", False),
        ("decimal(10,2)", "decimal(12,2)", True),
        ("decimal(10,2)", "decimal(12,3)", False),
        ("timestamp_ntz", "timestamp", False),
        ("string", "binary", False),
        ({"a": "integer"}, {"a": "long", "b": "string"}, True),
        ({"a": "integer", "c": "string"}, {"a": "integer"}, False),
        (["short"], ["integer"], True),
        (["string"], ["integer"], False),
        (["string"], "string", False),
    ],
)
def test_which_types_fit(new: object, old: object, expected: bool) -> None:
    assert fits(kind(new, nullable=False), kind(old)) is expected


def kind(text: object, nullable: bool = True) -> StructType:
    """Return a struct, which only fits if its fields do. A list is an array and a dict is a struct."""

    def json_of(one: object) -> object:
        match one:
            case list():
                return {"type": "array", "elementType": json_of(one[0]), "containsNull": nullable}
            case dict():
                fields = [
                    {"name": name, "type": json_of(inner), "nullable": nullable, "metadata": {}}
                    for name, inner in one.items()
                ]
                return {"type": "struct", "fields": fields}
            case _:
                return one

    return StructType.fromJson(json_of({"value": text}))  # type: ignore[arg-type]
