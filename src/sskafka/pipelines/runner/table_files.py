"""Parquet files of a micro-batch, written by Spark's tasks; the driver receives names and sizes, but no rows.

A table format (Delta, Iceberg) then adds the files to the table in one commit. A task that Spark runs again writes
files with other names; those of the first attempt are in no commit, and no reader of the table sees them.
"""

import hashlib
import json
import math
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_REPORT = "file string"
_ROW = "sskafka_row"
NOT_A_NUMBER = "NaN"
_PLAIN = re.compile(r"[A-Za-z0-9_.=-]+")
_STATISTICS_TEXT_MAX = 32
"""Longer text is left out of the statistics: truncated text would have to be rounded up."""


class TableFile(NamedTuple):
    """A file that a task has written."""

    path: str
    """Relative to the root of the table, as in the file system."""
    rows: int
    size_bytes: int
    modified_ms: int
    partition: Mapping[str, str | None]
    lowest: Mapping[str, Any]
    highest: Mapping[str, Any]
    nulls: Mapping[str, int]


def write_table_files(
    rows: "DataFrame", root: str, partition_by: Sequence[str] = (), *, keeps_partition_columns: bool = False
) -> list[TableFile]:
    """Write the rows to `root`, one file for each task and each value of the columns `partition_by`."""
    work = _task(root, tuple(partition_by), keeps_partition_columns)
    reports = rows.mapInArrow(work, _REPORT).collect()
    return [TableFile(**json.loads(report["file"])) for report in reports]


def _task(
    root: str, partition_by: tuple[str, ...], keeps_partition_columns: bool
) -> "Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
    """Return the function that runs in Spark's workers."""

    def work(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa  # noqa: PLC0415  in the worker

        files = FileSet(root, partition_by, keeps_partition_columns)
        for batch in batches:
            files.add(pa.Table.from_batches([batch]))
        texts = [json.dumps(file._asdict()) for file in files.close()]
        yield pa.RecordBatch.from_pydict({"file": pa.array(texts, pa.string())})

    return work


class FileSet:
    """The files of one task: one open file for each value of the partition columns."""

    def __init__(self, root: str, partition_by: tuple[str, ...], keeps_partition_columns: bool) -> None:
        from pyarrow import fs  # noqa: PLC0415  not for --help

        self._partition_by = partition_by
        self._keeps = keeps_partition_columns
        self._system: Any
        self._root: str
        self._system, self._root = fs.FileSystem.from_uri(root) if "://" in root else (fs.LocalFileSystem(), root)
        self._open: dict[tuple[str | None, ...], tuple[str, Any]] = {}

    def add(self, table: "pa.Table") -> None:
        for values, part in self._parts(_in_utc(table)):
            if part.num_rows:
                self._writer(values, part).write_table(part)

    def close(self) -> list[TableFile]:
        return [self._closed(values, path, writer) for values, (path, writer) in self._open.items()]

    def _parts(self, table: "pa.Table") -> "Iterator[tuple[tuple[str | None, ...], pa.Table]]":
        if not self._partition_by:
            yield (), table
            return
        import pyarrow as pa  # noqa: PLC0415  in the worker

        keys = list(self._partition_by)
        numbered = table.select(keys).append_column(_ROW, pa.array(range(table.num_rows), pa.int64()))
        rest = table if self._keeps else table.drop_columns(keys)
        for group in numbered.group_by(keys, use_threads=False).aggregate([(_ROW, "list")]).to_pylist():
            # By number: NaN is equal to no value, and 0.0 is equal to -0.0, which is another group.
            yield tuple(partition_text(group[key]) for key in keys), rest.take(group[f"{_ROW}_list"])

    def _writer(self, values: tuple[str | None, ...], part: "pa.Table") -> Any:
        if values not in self._open:
            from pyarrow import parquet  # noqa: PLC0415  in the worker

            folders = [folder(name, value) for name, value in zip(self._partition_by, values, strict=True)]
            path = "/".join((*folders, f"part-{uuid.uuid4().hex}.parquet"))
            full = f"{self._root}/{path}"
            self._system.create_dir(full.rpartition("/")[0], recursive=True)
            self._open[values] = path, parquet.ParquetWriter(full, part.schema, filesystem=self._system)
        return self._open[values][1]

    def _closed(self, values: tuple[str | None, ...], path: str, writer: Any) -> TableFile:
        writer.close()
        information = self._system.get_file_info(f"{self._root}/{path}")
        lowest, highest, nulls, rows = _statistics(self._system, f"{self._root}/{path}")
        return TableFile(
            path,
            rows,
            information.size,
            int(datetime.now(UTC).timestamp() * 1000),
            dict(zip(self._partition_by, values, strict=True)),
            lowest,
            highest,
            nulls,
        )


def folder(name: str, value: str | None) -> str:
    """Return the directory of a partition, for readers of the file system; table formats store the value in their log.

    A value that would need escaping is replaced by a digest: programs differ in how often they unescape."""
    text = f"{name}={value}"
    return text if _PLAIN.fullmatch(text) else hashlib.sha256(text.encode()).hexdigest()[:16]


def arrow_schema(rows: "DataFrame") -> "pa.Schema":
    """Return the columns of the files. All are nullable: a table outlives the constraints of a query."""
    import pyarrow as pa  # noqa: PLC0415  not for --help
    from deltalake import Schema  # noqa: PLC0415  it reads the form in which Spark writes schemas

    exact = pa.schema(Schema.from_json(rows.schema.json()).to_arrow())
    return pa.schema([field.with_nullable(True) for field in exact])


def partition_text(value: Any) -> str | None:
    """Return the value of a partition as table formats write it."""
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case datetime():
            return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f") if value.tzinfo else str(value)
        case float() if not math.isfinite(value):
            return NOT_A_NUMBER if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"  # as Java reads them
        case _:
            return str(value)


def _in_utc(table: "pa.Table") -> "pa.Table":
    """Return timestamps with the zone UTC, as table formats require; Spark uses the zone of its session."""
    import pyarrow as pa  # noqa: PLC0415  in the worker

    fields = [
        field.with_type(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(field.type) and field.type.tz else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


# Statistics by which readers skip files


def _statistics(system: Any, path: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, int], int]:
    """Return minimum, maximum and number of nulls of each simple column, and the number of rows."""
    from pyarrow import parquet  # noqa: PLC0415  in the worker

    metadata = parquet.read_metadata(path, filesystem=system)
    found: dict[str, list[Any]] = {}
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            column = metadata.row_group(group).column(number)
            if "." not in column.path_in_schema:
                found.setdefault(column.path_in_schema, []).append(column.statistics)
    complete = {name: groups for name, groups in found.items() if all(one is not None for one in groups)}
    nulls = {name: sum(one.null_count or 0 for one in groups) for name, groups in complete.items()}
    bounds = {name: bound for name, groups in complete.items() if (bound := _bound(groups)) is not None}
    lowest, highest = ({name: bound[end] for name, bound in bounds.items()} for end in (0, 1))
    return lowest, highest, nulls, metadata.num_rows


def _bound(groups: Sequence[Any]) -> tuple[Any, Any] | None:
    with_values = [one for one in groups if one.has_min_max]
    if not with_values:
        return None
    lowest, highest = min(one.min for one in with_values), max(one.max for one in with_values)
    texts = _statistic(lowest), _statistic(highest)
    return None if None in texts else texts


def _statistic(value: Any) -> Any:
    """Return a value as in the JSON of Delta's statistics; None if it is left out."""
    match value:
        case bool() | int() | float():
            return value
        case Decimal():
            return float(value)
        case str() if len(value) <= _STATISTICS_TEXT_MAX:
            return value
        case datetime():
            moment = value if value.tzinfo else value.replace(tzinfo=UTC)
            return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case _:
            return None
