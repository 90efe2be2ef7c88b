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
            write_deltalake(self._path, content, mode="append", partition_by=partitions, commit_properties=properties)

    def _merge(self, content: Any, properties: Any) -> None:
        """Rows of the same keys replace those that are there."""
        from deltalake import DeltaTable  # noqa: PLC0415  see above

        same = " and ".join(f"target.`{key}` = source.`{key}`" for key in self._sink.merge_keys)
        (
            DeltaTable(self._path)
            .merge(content, predicate=same, source_alias="source", target_alias="target", commit_properties=properties)
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute()
        )
