"""As much of a Spark DataFrame as writers of tables use: one task, in this process."""

import json
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType


class Rows:
    """As much of a DataFrame as is used; `meanwhile` is called while its tasks run."""

    def __init__(self, *numbers: int, query: str = "q", meanwhile: Callable[[], None] = lambda: None) -> None:
        self._numbers = numbers
        self._meanwhile = meanwhile
        line = (json.dumps({"id": query}),)
        self.sparkSession = SimpleNamespace(
            read=SimpleNamespace(text=lambda _: SimpleNamespace(collect=lambda: [line]))
        )

    schema = StructType([StructField("id", LongType())])

    def content(self) -> pa.Table:
        return pa.table({"id": pa.array(self._numbers, pa.int64())})

    def mapInArrow(self, work: Callable[..., Any], schema: str) -> Any:
        """One task, in this process."""
        self._meanwhile()
        reports = [row for batch in work(self.content().to_batches()) for row in batch.to_pylist()]
        return SimpleNamespace(collect=lambda: reports)


class Named(Rows):
    """Rows with a name, by number."""

    schema = StructType([StructField("id", LongType()), StructField("name", StringType())])

    def __init__(self, names: dict[int, str | None], query: str = "q") -> None:
        super().__init__(query=query)
        self._names = names

    def content(self) -> pa.Table:
        return pa.table({"id": pa.array(self._names, pa.int64()), "name": pa.array(self._names.values(), pa.string())})


class Typed(Rows):
    """Rows with an Arrow array in the column `value`, which has the given type of Spark."""

    def __init__(self, kind: DataType, values: pa.Array, numbers: Sequence[int] = ()) -> None:
        super().__init__(*(numbers or range(len(values))))
        self._values = values
        self.schema = StructType([StructField("id", LongType()), StructField("value", kind)])

    def content(self) -> pa.Table:
        return super().content().append_column("value", self._values)
