"""The table of a source: from records to the rows that the transformation sees.

    records ─ tombstones ─ parse ─> rows with `_error` ─┬─ null: expectations, watermark, dedupe ─> the table
                                                        └─ set:  a dead letter

Only the record itself decides whether its row is a dead letter, so the query that writes dead letters and the queries
of the sinks agree without communication.
"""

from collections.abc import Callable
from typing import Any, assert_never

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from sskafka.model.dead_letter import DLQ
from sskafka.pipelines.connector.options import BOOTSTRAP
from sskafka.pipelines.connector.selection import Connector
from sskafka.pipelines.files.avro_schema import decoder_of, parse_avro_schema, spark_columns
from sskafka.pipelines.files.ddl import Schema
from sskafka.pipelines.files.expectation import Action, Expectation
from sskafka.pipelines.files.pipeline import Pipeline
from sskafka.pipelines.files.source import RecordFormat, Source, Tombstones
from sskafka.pipelines.runner.backfill_range import SourceRange, connection_options
from sskafka.pipelines.runner.connectors import reader_of
from sskafka.pipelines.runner.naming import naming_the_line
from sskafka.pipelines.runner.observing import observed
from sskafka.pipelines.runner.progress import EXPECTATION, IN, ROWS, UNMET
from sskafka.records.avro import AvroDataError

ERROR = "_error"
NO_VALUE = "the record has no value"
_CORRUPT = "_corrupt"
_PARSED = "_parsed"
_CONFLUENT_HEADER_BYTES = 5


def read_records(
    spark: SparkSession, pipeline: Pipeline, source: Source, bootstrap: str, query: str, pause: str = ""
) -> DataFrame:
    """Return the records of a source's topics; no new micro-batch starts while the file `pause` exists."""
    connector = reader_of(spark, pipeline)
    reader = (
        spark.readStream.format(connector)
        .options(**pipeline.client_options)
        .option(BOOTSTRAP, bootstrap)
        .option(*source.subscription)
        .option("startingOffsets", source.starting)
        .option("includeHeaders", "true")
        .option("kafka.isolation.level", "read_committed")
        .option("groupIdPrefix", group_of(pipeline, query))
    )
    if pause and connector == Connector.SSKAFKA:
        reader = reader.option("pauseFile", pause)
    if source.max_offsets_per_trigger is not None:
        reader = reader.option("maxOffsetsPerTrigger", str(source.max_offsets_per_trigger))
    for name, value in source.options.items():
        reader = reader.option(name, value)
    return reader.load()


def read_range(
    spark: SparkSession, pipeline: Pipeline, source: Source, bootstrap: str, chosen: SourceRange
) -> DataFrame:
    """Return the records of a range as a batch: the watermark drops no record, and windows end with the range."""
    reader = (
        spark.read.format(reader_of(spark, pipeline))
        .options(**{**pipeline.client_options, **connection_options(source), **chosen.options()})
        .option(BOOTSTRAP, bootstrap)
        .option("includeHeaders", "true")
        .option("kafka.isolation.level", "read_committed")
    )
    return observed(reader.load(), f"{IN}{source.name}", sf.count(sf.lit(1)).alias(ROWS))


def group_of(pipeline: Pipeline, query: str) -> str:
    """Return the consumer group that shows the lag of a query."""
    return f"{pipeline.name}.{query}"


def parsed(records: DataFrame, pipeline: Pipeline, source: Source) -> DataFrame:
    """Return one row per record: its fields, its position, and `_error` if it cannot be used."""
    if source.tombstones is Tombstones.DROP:
        records = records.filter(sf.col("value").isNotNull())
    match source.format:
        case RecordFormat.RAW:
            rows = records.select("key", "value", "headers", *record_columns(), _tombstone_error(source))
        case RecordFormat.TEXT:
            rows = records.select(sf.col("value").cast("string"), *record_columns(), _tombstone_error(source))
        case RecordFormat.JSON:
            rows = _with_tombstones(_from_json(records, source), source)
        case RecordFormat.AVRO:
            rows = _with_tombstones(_from_avro(records, source), source)
    return _with_dead_expectations(rows, pipeline, source)


def record_columns() -> list[Column]:
    """Return the columns of position and content of a record, which expectations and dead letters need."""
    return [
        sf.col("key").cast("string").alias("_key"),
        sf.col("topic").alias("_topic"),
        sf.col("partition").alias("_partition"),
        sf.col("offset").alias("_offset"),
        sf.col("timestamp").alias("_timestamp"),
        sf.col("value").alias("_value"),
        sf.col("key").alias("_raw_key"),
        sf.col("headers").alias("_headers"),
    ]


def _tombstone_error(source: Source) -> Column:
    """Return the error of a record in a format that every value has: its absence, if it is an error."""
    error = sf.when(sf.col("value").isNull(), NO_VALUE) if source.tombstones is Tombstones.DLQ else sf.lit(None)
    return error.cast("string").alias(ERROR)


def _with_tombstones(rows: DataFrame, source: Source) -> DataFrame:
    if source.tombstones is Tombstones.DROP:  # none is left
        return rows
    error = NO_VALUE if source.tombstones is Tombstones.DLQ else sf.lit(None).cast("string")
    return rows.withColumn(ERROR, sf.when(sf.col("_value").isNull(), error).otherwise(sf.col(ERROR)))


def _from_json(records: DataFrame, source: Source) -> DataFrame:
    assert source.schema is not None
    schema = f"{source.schema.ddl()}, `{_CORRUPT}` string"
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    rows = records.select(
        sf.from_json(sf.col("value").cast("string"), schema, options).alias(_PARSED), *record_columns()
    )
    error = sf.when(sf.col(_PARSED).isNull() | sf.col(f"{_PARSED}.{_CORRUPT}").isNotNull(), _json_error(source.schema))
    for name in source.schema.required:
        error = error.when(sf.col(f"{_PARSED}.`{name}`").isNull(), f"the field {name} is missing")
    fields = [sf.col(f"{_PARSED}.`{name}`").alias(name) for name in source.schema.names]
    return rows.withColumn(ERROR, error).select(*fields, *_PLACE_NAMES, ERROR)


def _json_error(schema: Schema) -> Column:
    """Return an expression that finds the field with the wrong type. It is evaluated only for unreadable records."""
    text = sf.col("_value").cast("string")
    error = sf.when(sf.get_json_object(text, "$").isNull(), "the value is not JSON")
    for column in schema.columns:
        is_lost = sf.col(f"{_PARSED}.`{column.name}`").isNull()
        if "'" not in column.name:
            found = sf.get_json_object(text, f"$['{column.name}']")
            error = error.when(is_lost & found.isNotNull(), f"the field {column.name} is not {column.type}")
    return error.otherwise("the value is not JSON of this schema")


def _from_avro(records: DataFrame, source: Source) -> DataFrame:
    schema = parse_avro_schema(source.avro_schema)
    columns = spark_columns(schema)
    skip = _CONFLUENT_HEADER_BYTES if source.framing == "confluent" else 0
    decode = sf.udf(
        avro_row(source.avro_schema, skip), f"fields struct<{_as_struct(columns)}>, error string", useArrow=True
    )
    rows = records.select(decode(sf.col("value")).alias(_PARSED), *record_columns())
    names = [field["name"] for field in schema["fields"]]
    fields = [sf.col(f"{_PARSED}.fields.`{name}`").alias(name) for name in names]
    return rows.select(*fields, *_PLACE_NAMES, sf.col(f"{_PARSED}.error").alias(ERROR))


def _as_struct(columns: str) -> str:
    return columns.replace("` ", "`: ")


def avro_row(schema_text: str, skip: int) -> Callable[[bytes | None], dict[str, Any]]:
    """Return the function that runs in Spark's workers; it creates its decoder there once."""
    decoders: list[Callable[[bytes], dict[str, Any]]] = []

    def decode(value: bytes | None) -> dict[str, Any]:
        if not decoders:
            decoders.append(decoder_of(parse_avro_schema(schema_text)))
        if value is None:
            return {"fields": None, "error": None}
        try:
            return {"fields": decoders[0](bytes(value)[skip:]), "error": None}
        except AvroDataError as error:
            return {"fields": None, "error": str(error)}

    return decode


_PLACE_NAMES = ("_key", "_topic", "_partition", "_offset", "_timestamp", "_value", "_raw_key", "_headers")


def _with_dead_expectations(rows: DataFrame, pipeline: Pipeline, source: Source) -> DataFrame:
    for number, expectation in enumerate(source.expectations):
        if expectation.action is Action.DLQ:
            with naming_the_line(pipeline, f"{_expectations_of(source)}[{number}].check"):
                dead = sf.when(~met(expectation), _unmet_text(expectation))
                rows = rows.withColumn(ERROR, sf.coalesce(sf.col(ERROR), dead))
    return rows


def _expectations_of(source: Source) -> str:
    return f"sources.{source.name}.expectations"


def _unmet_text(expectation: Expectation) -> str:
    return f"the expectation {expectation.name} is not met: {expectation.check}"


def met(expectation: Expectation) -> Column:
    return sf.coalesce(sf.expr(expectation.check).cast("boolean"), sf.lit(False))


def table(rows: DataFrame, pipeline: Pipeline, source: Source) -> DataFrame:
    """Return the rows that the transformation sees."""
    good = rows.filter(sf.col(ERROR).isNull()).drop(ERROR, "_value", "_raw_key", "_headers")
    good = with_expectations(good, pipeline, source.expectations, _expectations_of(source))
    if source.watermark:
        with naming_the_line(pipeline, f"sources.{source.name}.event_time"):
            good = good.withWatermark(source.event_time, source.watermark)
    if source.dedupe:
        with naming_the_line(pipeline, f"sources.{source.name}.dedupe"):
            good = _without_duplicates(good, source)
    return good


def _without_duplicates(rows: DataFrame, source: Source) -> DataFrame:
    """Drop duplicates. A test case is not a stream: all of its rows are within any watermark."""
    columns = list(source.dedupe)
    return rows.dropDuplicatesWithinWatermark(columns) if rows.isStreaming else rows.dropDuplicates(columns)


def with_expectations(
    rows: DataFrame, pipeline: Pipeline, expectations: tuple[Expectation, ...], where: str
) -> DataFrame:
    """Count, drop or refuse rows that do not meet an expectation."""
    for number, expectation in enumerate(expectations):
        with naming_the_line(pipeline, f"{where}[{number}].check"):
            rows = _expecting(rows, expectation)
    return rows


def _expecting(rows: DataFrame, expectation: Expectation) -> DataFrame:
    match expectation.action:
        case Action.WARN:
            return _counted(rows, expectation)
        case Action.DROP:
            return _counted(rows, expectation).filter(met(expectation))
        case Action.FAIL:
            refusal = sf.raise_error(_unmet_text(expectation)).cast("boolean")
            return rows.filter(sf.when(met(expectation), sf.lit(True)).otherwise(refusal))
        case Action.DLQ:
            return rows  # these rows already have an error
        case other:
            assert_never(other)


def _counted(rows: DataFrame, expectation: Expectation) -> DataFrame:
    return observed(rows, f"{EXPECTATION}{expectation.name}", sf.count_if(~met(expectation)).alias(UNMET))


def dead_letters(rows: DataFrame, pipeline: Pipeline, source: Source) -> DataFrame:
    """Return dead rows as the original records, with headers for their position and error."""
    added = {
        f"{DLQ}topic": sf.col("_topic"),
        f"{DLQ}partition": sf.col("_partition").cast("string"),
        f"{DLQ}offset": sf.col("_offset").cast("string"),
        f"{DLQ}timestamp": sf.unix_millis(sf.col("_timestamp")).cast("string"),
        f"{DLQ}error": sf.col(ERROR),
        f"{DLQ}pipeline": sf.lit(pipeline.name),
        f"{DLQ}source": sf.lit(source.name),
    }
    structs = [
        sf.struct(sf.lit(name).alias("key"), value.cast("binary").alias("value")) for name, value in added.items()
    ]
    headers = sf.concat(sf.coalesce(sf.col("_headers"), sf.array()), sf.array(*structs))
    return rows.filter(sf.col(ERROR).isNotNull()).select(
        sf.col("_raw_key").alias("key"), sf.col("_value").alias("value"), headers.alias("headers")
    )
