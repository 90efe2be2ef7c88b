"""Tables of a database: Spark's tasks write a batch to a stage, and one transaction moves its rows to the table.

    tasks     rows ── Spark's JDBC writer ──> stage       a separate table for each attempt of a batch
    driver    one transaction:  batches   lock the row of the table (merge_keys, output_mode: complete)
                                          the number of the batch, under the id of the query
                                table     delete the rows with the keys of the stage (merge_keys), insert the stage
    driver    drop the stage

A batch that Spark runs again finds its number in the table of batches and is skipped. The transaction updates that
number before it moves rows, which locks its row: if two runs write the same batch at once, the second one waits and
then finds the number. A task that Spark runs again may have filled the stage twice: the transaction is rolled back
unless it has inserted exactly as many rows as the accepted tasks have written.

Transactions that replace rows first lock one more row of the table of batches, which all queries share that write the
same table. Otherwise two queries with a row of the same key could both insert it: neither sees, and deletes, what the
other has not committed yet.
"""

import hashlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from sskafka.pipelines.connector.topic_batches import query_id
from sskafka.pipelines.files.pipeline import OutputMode, Pipeline
from sskafka.pipelines.files.sink import JdbcSink
from sskafka.pipelines.runner.database import Database, JdbcSinkError, jdbc_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCHES = "sskafka_batches"
BATCHES_COLUMNS = (
    "query_id varchar(64) not null primary key, last_batch decimal(19) not null, pipeline varchar(255) not null"
)
PIPELINE_LENGTH_MAX = 255
NO_BATCH = -1
NULL_FLAG = "sskafka_null_"
KEY_TYPE = "varchar(255)"
"""Type of text keys if the sink creates the table: not every database can compare its type for long text."""
STAGE_ATTEMPTS = 3


class JdbcWriter:
    """The function that foreachBatch calls."""

    def __init__(self, pipeline: Pipeline, sink: JdbcSink, checkpoint: str) -> None:
        self._sink = sink
        self._mode = pipeline.output_mode
        self._checkpoint = checkpoint
        self._name = f"{pipeline.name}.{sink.name}"
        self._query_id = ""

    def check(self, spark: "SparkSession", columns: Sequence[str]) -> None:
        """Raise JdbcSinkError if the database cannot be reached or the table lacks a column."""
        with Database(spark, self._sink) as database:
            known = database.columns(self._sink.identifier)
            if known is not None:
                self._matching(known, columns)

    def __call__(self, rows: "DataFrame", batch: int) -> None:
        with Database(rows.sparkSession, self._sink) as database:
            if not self._query_id:
                self._begin(database, query_id(rows, self._checkpoint))
            if last_batch(database, self._batches, self._query_id) >= batch:
                return
            columns = self._columns(database, rows)
        for _ in range(STAGE_ATTEMPTS):
            with self._staged(rows, columns) as (stage, count):
                if self._commit(rows.sparkSession, stage, columns, count, batch):
                    return
        raise JdbcSinkError(
            f"the stage of batch {batch} did not have the rows that Spark's tasks reported, {STAGE_ATTEMPTS} times "
            "in a row; no row of the batch was written"
        )

    # Before the first batch

    def _begin(self, database: Database, query: str) -> None:
        """Create the table of batches, and drop the stages that a killed run has left."""
        create_batches(database, self._batches)
        register(database, self._batches, query, self._name)
        if self._replaces:
            register(database, self._batches, table_lock(self._sink.identifier), self._sink.identifier)
        for name in database.tables_beginning_with(stage_prefix(query)):
            with suppress(JdbcSinkError):  # another process is about to drop it
                database.execute(f"drop table {self._beside(name)}")
        self._query_id = query

    @property
    def _replaces(self) -> bool:
        return bool(self._sink.merge_keys) or self._mode is OutputMode.COMPLETE

    @property
    def _batches(self) -> str:
        return self._beside(BATCHES)

    def _beside(self, name: str) -> str:
        """Return the name of a table in the schema of the sink's table."""
        schema, dot, _ = self._sink.identifier.rpartition(".")
        return f"{schema}{dot}{name}"

    def _columns(self, database: Database, rows: "DataFrame") -> dict[str, str]:
        """Return the quoted name of each column in the database; create the table if it does not exist."""
        known = database.columns(self._sink.identifier)
        if known is None:
            self._create(database, rows)
            known = database.columns(self._sink.identifier)
            assert known is not None, "the table was created"
        return {name: database.quoted(found) for name, found in self._matching(known, rows.columns).items()}

    def _matching(self, known: Sequence[str], columns: Sequence[str]) -> dict[str, str]:
        """Return names in the database by names in Spark, which ignores their case."""
        by_lower = {name.lower(): name for name in known}
        missing = [name for name in columns if name.lower() not in by_lower]
        if missing:
            raise JdbcSinkError(
                f"the table {self._sink.identifier} has no column {', '.join(missing)}; it has {', '.join(known)}. "
                "Add the column to the table, or select other columns in the transformation",
                "table",
            )
        return {name: by_lower[name.lower()] for name in columns}

    def _create(self, database: Database, rows: "DataFrame") -> None:
        """Create the table with Spark's types for this database, and with a unique index if there are keys."""
        from pyspark.sql.types import StringType  # noqa: PLC0415  not for --help

        keys = self._sink.merge_keys
        texts = [one.name for one in rows.schema.fields if isinstance(one.dataType, StringType)]
        types = {**{key: KEY_TYPE for key in keys if key in texts}, **self._sink.column_types}
        writer = rows.sparkSession.createDataFrame([], rows.schema).write.format("jdbc")
        if types:
            chosen = ", ".join(f"`{name}` {kind}" for name, kind in types.items())
            writer = writer.option("createTableColumnTypes", chosen)
        writer.options(**jdbc_options(self._sink, self._sink.identifier)).mode("append").save()
        if keys:
            listed = ", ".join(map(database.quoted, keys))
            index = f"sskafka_{uuid.uuid4().hex[:8]}_keys"
            database.execute(f"create unique index {index} on {self._sink.identifier} ({listed})")

    # A batch

    @contextmanager
    def _staged(self, rows: "DataFrame", columns: dict[str, str]) -> Iterator[tuple[str, int]]:
        """Fill a table with the rows of the batch; yield its name and how many rows the accepted tasks have written."""
        from pyspark.sql import Observation  # noqa: PLC0415  not for --help
        from pyspark.sql import functions as sf  # noqa: PLC0415  see above

        stage = self._beside(f"{stage_prefix(self._query_id)}{uuid.uuid4().hex[:8]}")
        with Database(rows.sparkSession, self._sink) as database:
            refusing = database.columns_refusing_null(rows, self._sink.identifier)
            flags = {name: f"{NULL_FLAG}{number}" for number, name in enumerate(refusing)}
            copied = [*columns.values(), *(f"0 as {flag}" for flag in flags.values())]
            database.create_empty_copy(stage, self._sink.identifier, copied)
        try:
            counted = Observation()
            counted_rows = with_null_flags(rows, flags).observe(counted, sf.count(sf.lit(1)).alias("rows"))
            counted_rows.write.format("jdbc").options(**jdbc_options(self._sink, stage)).mode("append").save()
            with Database(rows.sparkSession, self._sink) as database:
                for name, flag in flags.items():
                    database.execute(f"update {stage} set {columns[name]} = null where {flag} = 1")
            yield stage, int(counted.get["rows"])
        finally:
            with Database(rows.sparkSession, self._sink) as database, suppress(JdbcSinkError):
                database.execute(f"drop table {stage}")

    def _commit(self, spark: "SparkSession", stage: str, columns: dict[str, str], count: int, batch: int) -> bool:
        """Move the rows of the stage to the table; return False if the stage does not have `count` rows."""
        table, names = self._sink.identifier, ", ".join(columns.values())
        with Database(spark, self._sink) as database, database.transaction() as transaction:
            if self._replaces:
                lock(database, self._batches, table_lock(self._sink.identifier))
            if not advance(database, self._batches, self._query_id, batch):
                return True  # another run has written the batch
            if self._mode is OutputMode.COMPLETE:
                database.execute(f"delete from {table}")
            elif self._sink.merge_keys:
                self._delete_merged(database, stage, [columns[key] for key in self._sink.merge_keys])
            inserted = database.execute(f"insert into {table} ({names}) select {names} from {stage}")
            if inserted != count:
                transaction.roll_back()
            return inserted == count

    def _delete_merged(self, database: Database, stage: str, keys: Sequence[str]) -> None:
        """Delete the rows that the stage replaces. Raises if a key is null or occurs twice in the batch."""
        table, listed = self._sink.identifier, ", ".join(keys)
        without = database.number(f"select count(*) from {stage} where {' or '.join(f'{key} is null' for key in keys)}")
        if without:
            raise JdbcSinkError(f"{without} rows have no value in one of the merge_keys ({listed})")
        twice = database.number(
            f"select count(*) from (select {listed} from {stage} group by {listed} having count(*) > 1) repeated"
        )
        if twice:
            raise JdbcSinkError(
                f"{twice} values of the merge_keys ({listed}) occur more than once in a batch, so it is not known "
                "which row to keep; aggregate by these columns (output_mode: update), or add columns to merge_keys"
            )
        same = " and ".join(f"staged.{key} = {table}.{key}" for key in keys)
        database.execute(f"delete from {table} where exists (select 1 from {stage} staged where {same})")


def with_null_flags(rows: "DataFrame", flags: Mapping[str, str]) -> "DataFrame":
    """Replace null by an empty value in the columns of `flags`, and mark it by 1 in the flag's column.

    An update of the stage restores the nulls: see `Database.columns_refusing_null`."""
    from pyspark.sql import functions as sf  # noqa: PLC0415  not for --help

    for name, flag in flags.items():
        column = sf.col(f"`{name}`")
        empty = sf.lit("").cast(rows.schema[name].dataType)
        rows = rows.withColumn(flag, column.isNull().cast("int")).withColumn(name, sf.coalesce(column, empty))
    return rows


def stage_prefix(query: str) -> str:
    """Return the prefix of a query's stages; it is short, because some databases limit names to 30 characters."""
    return f"sskafka_{query[:8]}_"


# The table of batches


def create_batches(database: Database, table: str) -> None:
    """Create the table of batches if it does not exist; another run may do so at the same time."""
    if database.columns(table) is not None:
        return
    try:
        database.execute(f"create table {table} ({BATCHES_COLUMNS})")
    except JdbcSinkError:
        if database.columns(table) is None:
            raise


def register(database: Database, table: str, query: str, name: str) -> None:
    """Insert a row for the query, without a batch yet, unless there is one."""
    if database.number(f"select count(*) from {table} where query_id = ?", query):
        return
    try:
        sql = f"insert into {table} (query_id, last_batch, pipeline) values (?, ?, ?)"
        database.execute(sql, query, NO_BATCH, name[:PIPELINE_LENGTH_MAX])
    except JdbcSinkError:
        if not database.number(f"select count(*) from {table} where query_id = ?", query):
            raise


def table_lock(identifier: str) -> str:
    """Return the id of the row that all queries of a table share; names of tables can be longer than the column."""
    return f"table {hashlib.sha256(identifier.lower().encode()).hexdigest()[:32]}"


def lock(database: Database, table: str, row: str) -> None:
    """Lock a row until the transaction ends; wait for a transaction that has locked it."""
    database.execute(f"update {table} set last_batch = ? where query_id = ?", NO_BATCH, row)


def last_batch(database: Database, table: str, query: str) -> int:
    return database.number(f"select max(last_batch) from {table} where query_id = ?", query)


def advance(database: Database, table: str, query: str, batch: int) -> bool:
    """Record the batch and lock the query's row until the transaction ends; return False if it was recorded before."""
    sql = f"update {table} set last_batch = ? where query_id = ? and last_batch < ?"
    return database.execute(sql, batch, query, batch) > 0
