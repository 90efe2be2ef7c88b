"""Run a test case of a pipeline: its tables over given records, without brokers and without a stream.

Spark computes the tables over all given records at once, as if all had arrived in time: watermarks drop nothing, and
windows are complete. Everything else is as in a run: parsing, tombstones, expectations, dead letters, steps.
"""

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from sskafka.pipelines.files.avro_schema import parse_avro_schema, spark_columns
from sskafka.pipelines.files.cases import DEAD_LETTERS, RESULT, Case
from sskafka.pipelines.files.source import RecordFormat, Source
from sskafka.pipelines.runner.errors import explained
from sskafka.pipelines.runner.naming import FileMistakeError
from sskafka.pipelines.runner.tables import ERROR, parsed, record_columns, table
from sskafka.pipelines.runner.transforming import TransformError, transformed

_RECORDS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int, "
    "headers array<struct<key: string, value: binary>>"
)
_OWN_FIELDS = ("_value", "_key", "_timestamp", "_partition", "_offset", "_topic", "_headers")
_LONG_AGO = "2026-01-01T00:00:00Z"
_TOLERANCE = 1e-9


def differences(spark: SparkSession, case: Case) -> list[str]:
    """Return what differs from the expected rows, a line each; empty: the case has passed."""
    try:
        found = _differences(spark, case)
    except (PySparkException, FileMistakeError, TransformError) as error:
        failure = case.pipeline.masked(explained(error))
        if case.fails and case.fails in failure:
            return []
        return [f"the pipeline fails: {failure}"]
    return [f"it does not fail with {case.fails!r}"] if case.fails else found


def _differences(spark: SparkSession, case: Case) -> list[str]:
    run = _CaseRun(spark, case)
    lines = []
    for name, expected in case.expected.items():
        rows = run.dead_letters() if name == DEAD_LETTERS else run.table(name)
        lines += [f"{name}: {line}" for line in _compared(spark, rows, expected)]
    if case.fails and not case.expected:
        run.table(RESULT).collect()
    return lines


class _CaseRun:
    def __init__(self, spark: SparkSession, case: Case) -> None:
        self._spark = spark
        self._pipeline = case.pipeline
        self._rows = {
            source.name: self._parsed(source, case.given.get(source.name, [])) for source in case.pipeline.sources
        }

    def table(self, name: str) -> DataFrame:
        pipeline = self._pipeline
        sources = {source.name: table(self._rows[source.name], pipeline, source) for source in pipeline.sources}
        return transformed(self._spark, pipeline, sources, "" if name == RESULT else name)

    def dead_letters(self) -> DataFrame:
        """Return position and error of each dead letter, as `sskafka pipeline dlq` shows them."""
        letters = [self._letters(source) for source in self._pipeline.sources]
        together = letters[0]
        for more in letters[1:]:
            together = together.union(more)
        return together

    def _letters(self, source: Source) -> DataFrame:
        return (
            self._rows[source.name]
            .filter(sf.col(ERROR).isNotNull())
            .select(
                sf.lit(source.name).alias("source"),
                sf.col(ERROR).alias("error"),
                sf.col("_topic").alias("topic"),
                sf.col("_partition").alias("partition"),
                sf.col("_offset").alias("offset"),
                sf.col("_key").alias("key"),
                sf.col("_value").cast("string").alias("value"),
            )
        )

    def _parsed(self, source: Source, given: Sequence[Any]) -> DataFrame:
        if source.format is RecordFormat.AVRO:
            return self._avro_rows(source, given)
        records = [_record(source, number, one) for number, one in enumerate(given)]
        return parsed(self._spark.createDataFrame(records, _RECORDS), self._pipeline, source)

    def _avro_rows(self, source: Source, given: Sequence[Any]) -> DataFrame:
        """Return rows with the writer's schema, as if they had been decoded: cases contain fields, not bytes."""
        schema = parse_avro_schema(source.avro_schema)
        as_json = self._spark.createDataFrame(
            [(*_record(source, number, one), json.dumps(_fields(one))) for number, one in enumerate(given)],
            f"{_RECORDS}, _json string",
        )
        decoded = as_json.select(sf.from_json("_json", spark_columns(schema)).alias("_parsed"), *record_columns())
        columns = [sf.col(f"_parsed.`{field['name']}`").alias(field["name"]) for field in schema["fields"]]
        position = [column for column in decoded.columns if column != "_parsed"]
        return decoded.select(*columns, *position, sf.lit(None).cast("string").alias(ERROR))


# Records


def _record(source: Source, number: int, given: Any) -> tuple[Any, ...]:
    own = _own_fields(given)
    headers = [(name, _bytes(value)) for name, value in (own.get("_headers") or {}).items()]
    return (
        _bytes(own.get("_key")),
        _value(given),
        own.get("_topic") or (source.topics[0] if source.topics else source.name),
        int(own.get("_partition", 0)),
        int(own.get("_offset", number)),
        _time(own.get("_timestamp", _LONG_AGO)),
        0,
        headers,
    )


def _own_fields(given: Any) -> Mapping[str, Any]:
    return {name: given[name] for name in _OWN_FIELDS if name in given} if isinstance(given, dict) else {}


def _fields(given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in _OWN_FIELDS} if isinstance(given, dict) else {}


def _value(given: Any) -> bytes | None:
    """Return the value of a record: text is the value itself, None is a tombstone.

    The fields of a mapping become JSON, unless it has `_value`."""
    if not isinstance(given, dict):
        return _bytes(given)
    return _bytes(given["_value"]) if "_value" in given else json.dumps(_fields(given)).encode()


def _bytes(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else str(value).encode()


def _time(text: Any) -> datetime:
    moment = datetime.fromisoformat(str(text))
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


# Rows


def _compared(spark: SparkSession, rows: DataFrame, expected: Sequence[Mapping[str, Any]]) -> list[str]:
    unknown = {name for row in expected for name in row} - set(rows.columns)
    if unknown:
        return [f"there is no column {', '.join(sorted(unknown))}; it has {', '.join(rows.columns)}"]
    wanted = _typed(spark, rows, expected)
    left = [row.asDict(recursive=True) for row in rows.collect()]
    missing = []
    for row in wanted:
        match = next((one for one in left if _fits(one, row)), None)
        if match is None:
            missing.append(f"missing: {_text(row)}")
        else:
            left.remove(match)
    return missing + [f"not expected: {_text(row)}" for row in left]


def _typed(spark: SparkSession, rows: DataFrame, expected: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the expected rows with the types of the columns; cases contain times and decimals as text."""
    if not expected:
        return []
    texts = spark.createDataFrame([(json.dumps(row),) for row in expected], "expected string")
    typed = texts.select(sf.from_json("expected", rows.schema).alias("row")).collect()
    values = [one["row"].asDict(recursive=True) for one in typed]
    return [{name: one[name] for name in row} for row, one in zip(expected, values, strict=True)]


def _fits(row: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    return all(_equal(row[name], value) for name, value in expected.items())


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=_TOLERANCE) or (math.isnan(left) and math.isnan(right))
    return bool(left == right)


def _text(row: Mapping[str, Any]) -> str:
    return json.dumps(row, default=str, ensure_ascii=False)
