"""Delta tables without a jar: Spark's tasks write the files, and the driver commits them with the `deltalake` package.

Each commit contains the id of the query and the number of the batch as an application transaction. A batch that Spark
runs again finds its number in the table and is skipped. A commit is based on the version of the table in which the
number was looked up: if another run of the query has written the batch in between, Delta refuses the commit. It also
refuses a merge if another query, such as a backfill, has committed in between. Then the table is read again, and the
same files are committed or merged, unless the table has the batch.

The id is that of Spark's checkpoint. With a new checkpoint, batch numbers start over and are independent of the earlier
ones.

A merge needs the rows that are in the table. The tasks write new rows next to the table, and the driver merges them
from there in small batches.
"""

import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sskafka.pipelines.connector.topic_batches import query_id
from sskafka.pipelines.files.pipeline import OutputMode, Pipeline
from sskafka.pipelines.files.sink import DeltaSink
from sskafka.pipelines.runner.schema_evolution import added_columns, widened_columns
from sskafka.pipelines.runner.table_files import TableFile, write_table_files

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable, Schema
    from pyspark.sql import DataFrame

STAGE = "_sskafka_stage"
"""A directory in the table's root; the underscore hides it from readers of files."""
COMMIT_ATTEMPTS = 10


class DeltaWriter:
    """The function that foreachBatch calls."""

    def __init__(self, pipeline: Pipeline, sink: DeltaSink, checkpoint: str) -> None:
        self._path = pipeline.resolved(sink.path)
        self._checkpoint = checkpoint
        self._query_id = ""
        self._name = f"{pipeline.name}.{sink.name}"
        self._sink = sink
        self._mode = pipeline.output_mode

    def __call__(self, rows: "DataFrame", batch: int) -> None:
        if not self._query_id:
            self._begin(query_id(rows, self._checkpoint))
        table = self._table()
        if table is None:
            self._create(rows, batch)
        elif self._has(table, batch):
            return
        elif self._merges:
            self._merge(rows, batch)
        else:
            self._write(table.metadata().partition_columns, self._without_deleted(rows), batch)

    def _begin(self, query: str) -> None:
        self._query_id = query
        if self._merges:
            delete_staged(f"{self._path}/{STAGE}", f"{query}-")  # files of a run that was killed

    @property
    def _merges(self) -> bool:
        return bool(self._sink.merge_keys) and self._mode is not OutputMode.COMPLETE

    @property
    def _application(self) -> str:
        return f"{self._name}.{self._query_id}"

    def _table(self) -> "DeltaTable | None":
        """Return the table as it is now; None if it does not exist yet."""
        from deltalake import DeltaTable  # noqa: PLC0415  only where Delta is written

        return DeltaTable(self._path) if DeltaTable.is_deltatable(self._path) else None

    def _has(self, table: "DeltaTable", batch: int) -> bool:
        last = table.transaction_version(self._application)
        return last is not None and last >= batch

    def _properties(self, batch: int) -> "CommitProperties":
        from deltalake import CommitProperties, Transaction  # noqa: PLC0415  see above

        return CommitProperties(app_transactions=[Transaction(self._application, batch)])

    def _commit(self, batch: int, commit: "Callable[[DeltaTable], None]") -> None:
        """Call `commit` with the newest version of the table, unless it has the batch; again if Delta refuses."""
        from deltalake.exceptions import CommitFailedError  # noqa: PLC0415  see above

        for attempts_left in reversed(range(COMMIT_ATTEMPTS)):
            table = self._table()
            assert table is not None, "it existed when the batch began"
            if self._has(table, batch):
                return
            try:
                commit(table)
                return
            except CommitFailedError:
                if not attempts_left:
                    raise

    # Append and overwrite: files become part of the table

    def _create(self, rows: "DataFrame", batch: int) -> None:
        """Create the table with its first rows; if another query creates it at the same time, add them to that one."""
        from deltalake.exceptions import DeltaError  # noqa: PLC0415  see above
        from deltalake.transaction import create_table_with_add_actions  # noqa: PLC0415  see above

        partition_by = list(self._sink.partition_by)
        kept = self._without_deleted(rows)
        actions = [add_action(file) for file in write_table_files(kept, self._path, partition_by)]
        try:
            create_table_with_add_actions(
                self._path,
                delta_schema(kept),
                actions,
                mode="error",
                partition_by=partition_by,
                commit_properties=self._properties(batch),
            )
        except DeltaError:
            if self._table() is None:
                raise
            self(rows, batch)

    def _write(self, partition_by: list[str], rows: "DataFrame", batch: int) -> None:
        schema = delta_schema(rows)
        actions = [add_action(file) for file in write_table_files(rows, self._path, partition_by)]
        overwrites = self._mode is OutputMode.COMPLETE

        def write(table: "DeltaTable") -> None:
            if not overwrites:  # the table gets the types of its new files
                self._check_types(table, rows)
            if self._evolve(table, schema):
                table.update_incremental()
                if self._has(table, batch):  # another run has written the batch since the table was read
                    return
            table.create_write_transaction(
                actions,
                "overwrite" if overwrites else "append",
                schema,
                partition_by,
                commit_properties=self._properties(batch),
            )

        if actions or overwrites:
            self._commit(batch, write)

    def _evolve(self, table: "DeltaTable", schema: "Schema") -> bool:
        """Add the columns that the table lacks, if the sink allows it; return whether there were any."""
        known = [field.name for field in table.schema().fields]
        fields = {field.name: field for field in schema.fields}
        added = added_columns(f"the Delta table {self._path}", known, list(fields), self._sink.evolves)
        if added:
            table.alter.add_columns([fields[name] for name in added])
        return bool(added)

    def _check_types(self, table: "DeltaTable", rows: "DataFrame") -> None:
        """Raise SchemaChangeError if the rows do not fit into the table, whose types deltalake cannot change."""
        from pyspark.sql.types import StructType  # noqa: PLC0415  not for --help

        known = StructType.fromJson(json.loads(table.schema().to_json()))
        types = {field.name: field.dataType for field in known.fields}
        widened_columns(f"the Delta table {self._path}", types, rows.schema)

    def _without_deleted(self, rows: "DataFrame") -> "DataFrame":
        """Return the rows without deletions, for a table that is still empty."""
        column = self._sink.delete_column
        return rows.filter(f"`{column}` is not true").drop(column) if column else rows

    # Merge: files are read once and then deleted

    def _merge(self, rows: "DataFrame", batch: int) -> None:
        """Replace or delete the rows of the table that have the same keys."""
        with staged(rows, f"{self._path}/{STAGE}/{self._query_id}-{uuid.uuid4().hex}") as files:
            if files is None:
                return

            def merge(table: "DeltaTable") -> None:
                self._check_types(table, rows)
                self._merge_from(table, files.scanner().to_reader(), batch)

            self._commit(batch, merge)

    def _merge_from(self, table: "DeltaTable", content: Any, batch: int) -> None:
        column = self._sink.delete_column
        new = [name for name in content.schema.names if name != column]
        known = [field.name for field in table.schema().fields]
        evolves = bool(added_columns(f"the Delta table {self._path}", known, new, self._sink.evolves))
        same = " and ".join(f"target.`{key}` = source.`{key}`" for key in self._sink.merge_keys)
        merger = table.merge(
            content,
            predicate=same,
            source_alias="source",
            target_alias="target",
            merge_schema=evolves,
            commit_properties=self._properties(batch),
        )
        if column:
            merger = merger.when_matched_delete(f"source.`{column}`")
            merger = merger.when_matched_update_all(except_cols=[column])
            merger = merger.when_not_matched_insert_all(f"source.`{column}` is not true", except_cols=[column])
        else:
            merger = merger.when_matched_update_all().when_not_matched_insert_all()
        merger.execute()


def add_action(file: TableFile) -> Any:
    """Return the entry of a file in Delta's log."""
    from deltalake.transaction import AddAction  # noqa: PLC0415  only where Delta is written

    statistics = {
        "numRecords": file.rows,
        "minValues": file.lowest,
        "maxValues": file.highest,
        "nullCount": file.nulls,
    }
    return AddAction(file.path, file.size_bytes, file.partition, file.modified_ms, True, json.dumps(statistics))


def delta_schema(rows: "DataFrame") -> "Schema":
    """Return the schema of a DataFrame; Delta and Spark write schemas in the same form."""
    from deltalake import Schema  # noqa: PLC0415  only where Delta is written

    return Schema.from_json(rows.schema.json())


@contextmanager
def staged(rows: "DataFrame", location: str) -> Iterator[Any]:
    """Yield a dataset of files that Spark's tasks have written with the rows; None if there are no rows."""
    from pyarrow import dataset  # noqa: PLC0415  only where Delta is written

    system, root = file_system(location)
    try:
        files: Sequence[TableFile] = write_table_files(rows, location)
        paths = [f"{root}/{file.path}" for file in files]
        yield dataset.dataset(paths, filesystem=system, format="parquet") if paths else None
    finally:
        delete_staged(*location.rsplit("/", 1))


def delete_staged(location: str, prefix: str) -> None:
    """Delete the directories in `location` whose names begin with `prefix`."""
    from pyarrow import fs  # noqa: PLC0415  see above

    system, root = file_system(location)
    for found in system.get_file_info(fs.FileSelector(root, allow_not_found=True)):
        if found.type == fs.FileType.Directory and found.base_name.startswith(prefix):
            system.delete_dir(found.path)


def file_system(location: str) -> tuple[Any, str]:
    from pyarrow import fs  # noqa: PLC0415  see above

    return fs.FileSystem.from_uri(location) if "://" in location else (fs.LocalFileSystem(), location)
