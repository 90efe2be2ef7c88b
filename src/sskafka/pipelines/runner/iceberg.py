"""Iceberg tables without a jar: Spark's tasks write the files, and the driver commits them with `pyiceberg`.

Each commit also sets a property of the table: the number of the batch under the id of the query, which is that of
Spark's checkpoint. A batch that Spark runs again finds its number there and is skipped. A commit is based on the
snapshot that was read: if another query has committed in between, such as a backfill, the catalog refuses the commit.
Then the table is read again, and the same files are committed, unless another run has written the batch.
"""

import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sskafka.pipelines.connector.topic_batches import query_id
from sskafka.pipelines.files.pipeline import OutputMode, Pipeline
from sskafka.pipelines.files.sink import IcebergSink
from sskafka.pipelines.runner.schema_evolution import added_columns, widened_columns
from sskafka.pipelines.runner.table_files import NOT_A_NUMBER, TableFile, arrow_schema, write_table_files

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table, Transaction
    from pyspark.sql import DataFrame

DATA = "data"
"""The directory of a table that contains its files."""
BATCH_PROPERTY = "sskafka.batch."
NO_RETRIES = {"commit.retry.num-retries": "0"}
"""pyiceberg must not commit refused files on another snapshot, which may already contain the batch."""
COMMIT_ATTEMPTS = 10


class IcebergWriter:
    """The function that foreachBatch calls."""

    def __init__(self, pipeline: Pipeline, sink: IcebergSink, checkpoint: str) -> None:
        self._sink = sink
        self._mode = pipeline.output_mode
        self._checkpoint = checkpoint
        self._name = f"{pipeline.name}.{sink.name}"
        self._catalog_properties = catalog_properties(pipeline, sink)
        self._catalog: Catalog | None = None
        self._property = ""

    def __call__(self, rows: "DataFrame", batch: int) -> None:
        self._property = self._property or f"{BATCH_PROPERTY}{self._name}.{query_id(rows, self._checkpoint)}"
        table = self._table(rows)
        if self._has(table, batch):
            return
        if self._evolve(table, rows) and self._has(table, batch):
            return  # another run has written the batch since the table was read
        self._write(table, rows, batch)

    def _has(self, table: "Table", batch: int) -> bool:
        return int(table.properties.get(self._property, -1)) >= batch

    def _table(self, rows: "DataFrame") -> "Table":
        """Return the table as it is now; create it if it does not exist."""
        from pyiceberg.catalog import load_catalog  # noqa: PLC0415  only where Iceberg is written

        if self._catalog is None:
            self._catalog = load_catalog(self._sink.catalog, **self._catalog_properties)
        if self._catalog.table_exists(self._sink.identifier):
            return self._catalog.load_table(self._sink.identifier)
        self._catalog.create_namespace_if_not_exists(self._sink.identifier.rpartition(".")[0])
        return self._create(self._catalog, arrow_schema(rows))

    def _create(self, catalog: "Catalog", schema: "pa.Schema") -> "Table":
        """Create an empty table, unless another query creates it at the same time."""
        from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError  # noqa: PLC0415  see above

        with (
            suppress(CommitFailedException, TableAlreadyExistsError),
            catalog.create_table_transaction(self._sink.identifier, schema) as creation,
        ):
            if self._sink.partition_by:
                with creation.update_spec() as spec:
                    for column in self._sink.partition_by:
                        spec.add_identity(column)
        return catalog.load_table(self._sink.identifier)

    def _evolve(self, table: "Table", rows: "DataFrame") -> bool:
        """Change the columns of the table as the rows need it, if the sink allows it; return whether any changed."""
        from pyiceberg.io.pyarrow import schema_to_pyarrow  # noqa: PLC0415  only where Iceberg is written
        from pyspark.sql.pandas.types import from_arrow_type  # noqa: PLC0415  not for --help

        schema, known = arrow_schema(rows), schema_to_pyarrow(table.schema())
        shared = [field for field in known if field.name in schema.names]
        types = {field.name: from_arrow_type(field.type, prefer_timestamp_ntz=True) for field in shared}
        name, evolves = f"the Iceberg table {self._sink.identifier}", self._sink.evolves
        added = added_columns(name, known.names, schema.names, evolves)
        changed = added + widened_columns(name, types, rows.schema, can_widen=evolves)
        if changed:
            with table.update_schema() as update:
                update.union_by_name(schema)
        return bool(changed)

    def _write(self, table: "Table", rows: "DataFrame", batch: int) -> None:
        from pyiceberg.exceptions import CommitFailedException  # noqa: PLC0415  only where Iceberg is written

        root = f"{table.location()}/{DATA}"
        columns = [field.name for field in table.spec().fields]
        files = write_table_files(rows, root, columns, keeps_partition_columns=True)
        self._refuse_nan(files)
        paths = [f"{root}/{file.path}" for file in files]
        for attempts_left in reversed(range(COMMIT_ATTEMPTS)):
            try:
                self._commit(table, paths, batch)
                return
            except CommitFailedException:
                if self._has(table.refresh(), batch):
                    return
                if not attempts_left:
                    raise

    def _refuse_nan(self, files: list[TableFile]) -> None:
        """Raise if a partition is NaN: pyiceberg would call it null, and other programs would read null in its rows."""
        for file in files:
            for column, value in file.partition.items():
                if value == NOT_A_NUMBER and column not in file.lowest:  # text has a lowest value
                    raise ValueError(
                        f"the Iceberg table {self._sink.identifier} is partitioned by {column}, and rows have NaN in "
                        f"it, which pyiceberg cannot store. Replace it in the transformation: nanvl({column}, 0)"
                    )

    def _commit(self, table: "Table", paths: list[str], batch: int) -> None:
        table.properties.update(NO_RETRIES)  # only here: other programs that write the table keep their setting
        with table.transaction() as commit:
            commit.set_properties({self._property: str(batch)})
            if self._mode is OutputMode.COMPLETE:
                _delete_all(commit)
            if paths:
                commit.add_files(paths, check_duplicate_files=False)


def _delete_all(commit: "Transaction") -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Delete operation did not match any records")  # the table has no snapshot yet
        commit.delete("true")


def catalog_properties(pipeline: Pipeline, sink: IcebergSink) -> dict[str, Any]:
    """Return pyiceberg's properties; a local warehouse is relative to the file, like other paths."""
    properties = dict(sink.catalog_properties)
    warehouse = properties.get("warehouse")
    if warehouse and "://" not in warehouse:
        properties["warehouse"] = pipeline.resolved(warehouse)
    return properties
