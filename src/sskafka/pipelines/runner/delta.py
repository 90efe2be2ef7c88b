"""Delta tables without a jar: batches are collected on the driver and written by the `deltalake` package.

Each commit carries the query's id and the batch's number as an application transaction. A batch that Spark runs again
finds its number in the table and is left out. The table is looked at once a batch, and what is written is a commit
upon that very version: when another run of the query has written the batch in between, Delta refuses the commit.

The id is that of Spark's checkpoint: with a new checkpoint batches are counted anew, and those of the last one say
nothing about them.
"""

import json
from typing import TYPE_CHECKING, Any

from sskafka.pipelines.files.model import DeltaSink, OutputMode, Pipeline

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame


class DeltaWriter:
    """What foreachBatch calls."""

    def __init__(self, pipeline: Pipeline, sink: DeltaSink, checkpoint: str) -> None:
        self._path = pipeline.resolved(sink.path)
        self._checkpoint = checkpoint
        self._application = ""
        self._name = f"{pipeline.name}.{sink.name}"
        self._sink = sink
        self._mode = pipeline.output_mode

    def __call__(self, rows: "DataFrame", batch: int) -> None:
        self._application = self._application or f"{self._name}.{self._query_id(rows)}"
        table = self._table()
        if table is not None and self._has(table, batch):
            return
        content = rows.toArrow()
        if content.num_rows or table is None or self._mode is OutputMode.COMPLETE:
            self._write(table, content, batch)

    def _query_id(self, rows: "DataFrame") -> str:
        """Spark writes it before the first batch, wherever the checkpoint is."""
        (line,) = rows.sparkSession.read.text(f"{self._checkpoint}/metadata").collect()
        return str(json.loads(line[0])["id"])

    def _table(self) -> "DeltaTable | None":
        """The table as it is now; None where there is none yet."""
        from deltalake import DeltaTable  # noqa: PLC0415  only where Delta is written

        return DeltaTable(self._path) if DeltaTable.is_deltatable(self._path) else None

    def _has(self, table: "DeltaTable", batch: int) -> bool:
        last = table.transaction_version(self._application)
        return last is not None and last >= batch

    def _write(self, table: "DeltaTable | None", content: Any, batch: int) -> None:
        from deltalake import CommitProperties, Transaction, write_deltalake  # noqa: PLC0415  see above

        properties = CommitProperties(app_transactions=[Transaction(self._application, batch)])
        if table is None:
            partitions = list(self._sink.partition_by) or None
            kept = self._without_deleted(content)
            write_deltalake(self._path, kept, mode="error", partition_by=partitions, commit_properties=properties)
        elif self._mode is OutputMode.COMPLETE:
            write_deltalake(table, content, mode="overwrite", commit_properties=properties)
        elif self._sink.merge_keys:
            self._merge(table, content, properties)
        else:
            kept = self._without_deleted(content)
            write_deltalake(table, kept, mode="append", commit_properties=properties)

    def _without_deleted(self, content: Any) -> Any:
        """For a table that is empty yet: there is nothing to delete from."""
        column = self._sink.delete_column
        if not column:
            return content
        import pyarrow.compute as pc  # noqa: PLC0415  see above

        stays = pc.invert(pc.fill_null(content.column(column), False))
        return content.filter(stays).drop_columns([column])

    def _merge(self, table: "DeltaTable", content: Any, properties: Any) -> None:
        """Rows of the same keys replace those that are there, or delete them."""
        same = " and ".join(f"target.`{key}` = source.`{key}`" for key in self._sink.merge_keys)
        merger = table.merge(
            content, predicate=same, source_alias="source", target_alias="target", commit_properties=properties
        )
        column = self._sink.delete_column
        if column:
            merger = merger.when_matched_delete(f"source.`{column}`")
            merger = merger.when_matched_update_all(except_cols=[column])
            merger = merger.when_not_matched_insert_all(f"source.`{column}` is not true", except_cols=[column])
        else:
            merger = merger.when_matched_update_all().when_not_matched_insert_all()
        merger.execute()
