"""Schemas that a stranger may give: what is read takes time in proportion to its bytes."""

from typing import Any

import pytest

from sskafka.records.avro import AvroSchemaError, avro_reader, check_is_bounded


def record(kind: Any, name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": "f", "type": kind}]}


@pytest.mark.parametrize(
    "schema",
    [
        "long",
        record(["null", "string"]),
        record({"type": "array", "items": "int"}),
        record({"type": "map", "values": "null"}),
        record({"type": "array", "items": ["null", "int"]}),
        record({"type": "array", "items": {"type": "enum", "name": "E", "symbols": ["A"]}}),
        {
            "type": "record",
            "name": "Outer",
            "fields": [{"name": "a", "type": record("int", "Inner")}, {"name": "b", "type": "Inner"}],
        },
    ],
)
def test_bounded(schema: Any) -> None:
    check_is_bounded(schema)
    avro_reader(schema)


@pytest.mark.parametrize(
    ("schema", "part"),
    [
        (record({"type": "array", "items": "null"}), "take no byte"),
        (record({"type": "array", "items": record("null", "Empty")}), "take no byte"),
        (record({"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}}), "take no byte"),
        (record(["null", "R"]), "contains itself"),
        (record({"type": "array", "items": "R"}), "contains itself"),
        (record({"type": "map", "values": "R"}), "contains itself"),
        ({**record(["null", "n.R"]), "namespace": "n"}, "contains itself"),
        (record(["null", "n.R"], "n.R"), "contains itself"),
        ({**record(record(["null", "n.Inner"], "Inner")), "namespace": "n"}, "contains itself"),
        ({"type": "record", "name": "R"}, "no list of fields"),
        (5, "not an Avro type"),
        ({"type": {"type": {"type": 5}}}, "not an Avro type"),
    ],
)
def test_unbounded(schema: Any, part: str) -> None:
    with pytest.raises(AvroSchemaError, match=part):
        check_is_bounded(schema)


def test_types_that_use_each_other_many_times_are_checked_quickly() -> None:
    fields: list[dict[str, Any]] = [{"name": "f0", "type": record("int", "T0")}]
    for number in range(1, 200):
        twice = [{"name": "a", "type": f"T{number - 1}"}, {"name": "b", "type": f"T{number - 1}"}]
        kind = {"type": "record", "name": f"T{number}", "fields": twice}
        fields.append({"name": f"f{number}", "type": kind})
    check_is_bounded({"type": "record", "name": "Outer", "fields": fields})
