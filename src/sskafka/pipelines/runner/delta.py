"""Delta tables without a jar: batches are collected on the driver and written by the `deltalake` package.

Each commit carries the query's name and the batch's number as an application transaction. A batch that Spark runs again
finds its number in the table and is left out.
"""

from typing import Any

from pyspark.sql import DataFrame

from sskafka.pipelines.files.model import DeltaSink, OutputMode, Pipeline


class DeltaWriter:
    """What foreachBatch calls."""

    def __init__(self, pipeline: Pipeline, sink: DeltaSink) -> None:
        self._path = pipeline.resolved(sink.path)
        self._application = f"{pipeline.name}.{sink.name}"
        self._sink = sink
        self._mode = pipeline.output_mode

    def __call__(self, rows: DataFrame, batch: int) -> None:
        if self._is_written(batch):
            return
        content = rows.toArrow()
        if content.num_rows or not self._exists():
            self._write(content, batch)

    def _exists(self) -> bool:
        from deltalake import DeltaTable  # noqa: PLC0415  only where Delta is written

        return bool(DeltaTable.is_deltatable(self._path))

    def _is_written(self, batch: int) -> bool:
        from deltalake import DeltaTable  # noqa: PLC0415  see above

        if not self._exists():
            return False
        last = DeltaTable(self._path).transaction_version(self._application)
        return last is not None and last >= batch

    def _write(self, content: Any, batch: int) -> None:
        from deltalake import CommitProperties, Transaction, write_deltalake  # noqa: PLC0415  see above

        properties = CommitProperties(app_transactions=[Transaction(self._application, batch)])
        if self._mode is OutputMode.COMPLETE:
            write_deltalake(self._path, content, mode="overwrite", commit_properties=properties)
        elif self._sink.merge_keys and self._exists():
            self._merge(content, properties)
        else:
            partitions = list(self._sink.partition_by) or None
            kept = self._without_deleted(content)
            write_deltalake(self._path, kept, mode="append", partition_by=partitions, commit_properties=properties)

    def _without_deleted(self, content: Any) -> Any:
        """For a table that is empty yet: there is nothing to delete from."""
        column = self._sink.delete_column
        if not column:
            return content
        import pyarrow.compute as pc  # noqa: PLC0415  see above

        return content.filter(pc.invert(content.column(column))).drop_columns([column])

    def _merge(self, content: Any, properties: Any) -> None:
        """Rows of the same keys replace those that are there, or delete them."""
        from deltalake import DeltaTable  # noqa: PLC0415  see above

        same = " and ".join(f"target.`{key}` = source.`{key}`" for key in self._sink.merge_keys)
        merger = DeltaTable(self._path).merge(
            content, predicate=same, source_alias="source", target_alias="target", commit_properties=properties
        )
        column = self._sink.delete_column
        if column:
            merger = merger.when_matched_delete(f"source.`{column}`")
            merger = merger.when_matched_update_all(except_cols=[column])
            merger = merger.when_not_matched_insert_all(f"not source.`{column}`", except_cols=[column])
        else:
            merger = merger.when_matched_update_all().when_not_matched_insert_all()
        merger.execute()
