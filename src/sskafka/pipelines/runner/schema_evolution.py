"""Changes of a query's columns compared with its table: added if the sink has `evolve: true`, or refused.

Files whose values do not fit into the types of the table would make the whole table unreadable.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType


class SchemaChangeError(Exception):
    """The rows have columns or types that the table lacks, and the sink cannot add them."""


def added_columns(table: str, known: Sequence[str], columns: Sequence[str], evolves: bool) -> list[str]:
    """Return the columns of the rows that the table lacks; columns that only the table has become null."""
    added = [name for name in columns if name not in known]
    if added and not evolves:
        raise SchemaChangeError(
            f"{table} has no column {', '.join(added)}; it has {', '.join(known)}. "
            "Set `evolve: true` in the sink to add new columns"
        )
    return added


def widened_columns(
    table: str, known: "Mapping[str, DataType]", columns: "StructType", can_widen: bool = False
) -> list[str]:
    """Return the columns whose type in the table must become wider; raise SchemaChangeError if this is impossible."""
    changed = [
        (one.name, known[one.name], one.dataType)
        for one in columns.fields
        if one.name in known and not fits(one.dataType, known[one.name])
    ]
    for name, old, new in changed:
        if not (can_widen and fits(old, new)):
            raise SchemaChangeError(
                f"{table} has the column {name} with the type {old.simpleString()}, and the rows have it with the type "
                f"{new.simpleString()}. Cast it in the transformation, or give the new column another name"
            )
    return [name for name, _, _ in changed]


def fits(new: "DataType", old: "DataType") -> bool:
    """Return whether readers of a table accept files with the type `new` in a column of the type `old`."""
    from pyspark.sql import types  # noqa: PLC0415  not for --help

    integers: list[DataType] = [types.ByteType(), types.ShortType(), types.IntegerType(), types.LongType()]
    match new, old:
        case types.StructType(), types.StructType():
            known = {field.name: field.dataType for field in old.fields}
            return all(field.name in known and fits(field.dataType, known[field.name]) for field in new.fields)
        case types.ArrayType(), types.ArrayType():
            return fits(new.elementType, old.elementType)
        case types.MapType(), types.MapType():
            return fits(new.keyType, old.keyType) and fits(new.valueType, old.valueType)
        case types.DecimalType(), types.DecimalType():
            return new.scale == old.scale and new.precision <= old.precision
        case (types.FloatType(), types.DoubleType()) | (types.StringType(), types.StringType()):
            return True
        case _ if new in integers and old in integers:
            return integers.index(new) <= integers.index(old)
        case _:
            return new == old
