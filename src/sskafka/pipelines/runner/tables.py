"""From a source of the file to the table that the transformation sees.

    records ─ parse ─> rows with `_error` ─┬─ null: expectations, watermark, dedupe ─> the table
                                           └─ set:  a dead letter

Which rows are dead is decided by the record alone, so the query that writes dead letters and those that write to sinks
agree without knowing each other.
"""

from collections.abc import Callable
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from sskafka.pipelines.connector.options import BOOTSTRAP
from sskafka.pipelines.files.avro_schema import AvroDataError, decoder_of, parse_avro_schema, spark_columns
from sskafka.pipelines.files.model import Action, Expectation, Pipeline, RecordFormat, Source

ERROR = "_error"
_CORRUPT = "_corrupt"
_PARSED = "_parsed"
_CONFLUENT_HEADER_BYTES = 5


def read_records(spark: SparkSession, pipeline: Pipeline, source: Source, bootstrap: str, query: str) -> DataFrame:
    """The records of a source's topics, as the connector gives them."""
    reader = (
        spark.readStream.format(connector_of(pipeline, spark))
        .option(BOOTSTRAP, bootstrap)
        .option("startingOffsets", source.starting)
        .option("includeHeaders", "true")
        .option("kafka.isolation.level", "read_committed")
        .option("groupIdPrefix", group_of(pipeline, query))
    )
    if source.pattern:
        reader = reader.option("subscribePattern", source.pattern)
    else:
        reader = reader.option("subscribe", ",".join(source.topics))
    if source.max_offsets_per_trigger is not None:
        reader = reader.option("maxOffsetsPerTrigger", str(source.max_offsets_per_trigger))
    for name, value in source.options.items():
        reader = reader.option(name, value)
    return reader.load()


def group_of(pipeline: Pipeline, query: str) -> str:
    """The consumer group that shows a query's lag."""
    return f"{pipeline.name}.{query}"


def connector_of(pipeline: Pipeline, spark: SparkSession) -> str:
    """Ours, or Spark's own where its jar was put on the classpath on purpose."""
    if pipeline.connector != "auto":
        return pipeline.connector
    configured = ",".join(spark.conf.get(key, "") or "" for key in ("spark.jars.packages", "spark.jars"))
    return "kafka" if "spark-sql-kafka" in configured else "sskafka"


def parsed(records: DataFrame, source: Source) -> DataFrame:
    """One row a record: the fields of its schema, where it came from, and `_error` when it cannot be used."""
    place = [
        sf.col("key").cast("string").alias("_key"),
        sf.col("topic").alias("_topic"),
        sf.col("partition").alias("_partition"),
        sf.col("offset").alias("_offset"),
        sf.col("timestamp").alias("_timestamp"),
        sf.col("value").alias("_value"),
        sf.col("key").alias("_raw_key"),
    ]
    match source.format:
        case RecordFormat.RAW:
            rows = records.select("key", "value", "headers", *place, sf.lit(None).cast("string").alias(ERROR))
        case RecordFormat.TEXT:
            rows = records.select(sf.col("value").cast("string"), *place, sf.lit(None).cast("string").alias(ERROR))
        case RecordFormat.JSON:
            rows = _from_json(records, source, place)
        case RecordFormat.AVRO:
            rows = _from_avro(records, source, place)
    return _with_dead_expectations(rows, source)


def _from_json(records: DataFrame, source: Source, place: list[Column]) -> DataFrame:
    assert source.schema is not None
    schema = f"{source.schema.ddl()}, `{_CORRUPT}` string"
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    rows = records.select(sf.from_json(sf.col("value").cast("string"), schema, options).alias(_PARSED), *place)
    error = sf.when(sf.col("_value").isNull(), "the record has no value")
    error = error.when(
        sf.col(_PARSED).isNull() | sf.col(f"{_PARSED}.{_CORRUPT}").isNotNull(), "the value is not JSON of this schema"
    )
    for name in source.schema.required:
        error = error.when(sf.col(f"{_PARSED}.`{name}`").isNull(), f"the field {name} is missing")
    fields = [sf.col(f"{_PARSED}.`{name}`").alias(name) for name in source.schema.names]
    return rows.withColumn(ERROR, error).select(*fields, *_PLACE_NAMES, ERROR)


def _from_avro(records: DataFrame, source: Source, place: list[Column]) -> DataFrame:
    schema = parse_avro_schema(source.avro_schema)
    columns = spark_columns(schema)
    skip = _CONFLUENT_HEADER_BYTES if source.framing == "confluent" else 0
    decode = sf.udf(
        avro_row(source.avro_schema, skip), f"fields struct<{_as_struct(columns)}>, error string", useArrow=True
    )
    rows = records.select(decode(sf.col("value")).alias(_PARSED), *place)
    names = [field["name"] for field in schema["fields"]]
    fields = [sf.col(f"{_PARSED}.fields.`{name}`").alias(name) for name in names]
    return rows.select(*fields, *_PLACE_NAMES, sf.col(f"{_PARSED}.error").alias(ERROR))


def _as_struct(columns: str) -> str:
    return columns.replace("` ", "`: ")


def avro_row(schema_text: str, skip: int) -> Callable[[bytes | None], dict[str, Any]]:
    """The function that runs in Spark's workers; it builds its decoder there, once."""
    decoders: list[Callable[[bytes], dict[str, Any]]] = []

    def decode(value: bytes | None) -> dict[str, Any]:
        if not decoders:
            decoders.append(decoder_of(parse_avro_schema(schema_text)))
        if value is None:
            return {"fields": None, "error": "the record has no value"}
        try:
            return {"fields": decoders[0](bytes(value)[skip:]), "error": None}
        except AvroDataError as error:
            return {"fields": None, "error": str(error)}

    return decode


_PLACE_NAMES = ("_key", "_topic", "_partition", "_offset", "_timestamp", "_value", "_raw_key")


def _with_dead_expectations(rows: DataFrame, source: Source) -> DataFrame:
    error = sf.col(ERROR)
    for expectation in source.expectations:
        if expectation.action is Action.DLQ:
            text = f"the expectation {expectation.name} is not met: {expectation.check}"
            error = sf.coalesce(error, sf.when(~met(expectation), text))
    return rows.withColumn(ERROR, error)


def met(expectation: Expectation) -> Column:
    return sf.coalesce(sf.expr(expectation.check).cast("boolean"), sf.lit(False))


def table(rows: DataFrame, source: Source) -> DataFrame:
    """What the transformation sees of parsed rows."""
    good = rows.filter(sf.col(ERROR).isNull()).drop(ERROR, "_value", "_raw_key")
    good = with_expectations(good, source.expectations)
    if source.watermark:
        good = good.withWatermark(source.event_time, source.watermark)
    if source.dedupe:
        good = good.dropDuplicatesWithinWatermark(list(source.dedupe))
    return good


def with_expectations(rows: DataFrame, expectations: tuple[Expectation, ...]) -> DataFrame:
    """Counts, drops or refuses rows that do not meet what is expected of them."""
    for expectation in expectations:
        match expectation.action:
            case Action.WARN:
                rows = _counted(rows, expectation)
            case Action.DROP:
                rows = _counted(rows, expectation).filter(met(expectation))
            case Action.FAIL:
                text = f"the expectation {expectation.name} is not met: {expectation.check}"
                rows = rows.filter(
                    sf.when(met(expectation), sf.lit(True)).otherwise(sf.raise_error(text).cast("boolean"))
                )
            case Action.DLQ:
                pass  # such rows have their error already
    return rows


def _counted(rows: DataFrame, expectation: Expectation) -> DataFrame:
    return rows.observe(f"expectation_{expectation.name}", sf.count_if(~met(expectation)).alias("unmet"))


def dead_letters(rows: DataFrame, pipeline: Pipeline, source: Source) -> DataFrame:
    """Dead rows as records: the original key and value, and in headers where they came from and what is wrong."""
    headers = {
        "dlq.topic": sf.col("_topic"),
        "dlq.partition": sf.col("_partition").cast("string"),
        "dlq.offset": sf.col("_offset").cast("string"),
        "dlq.timestamp": sf.unix_millis(sf.col("_timestamp")).cast("string"),
        "dlq.error": sf.col(ERROR),
        "dlq.pipeline": sf.lit(pipeline.name),
        "dlq.source": sf.lit(source.name),
    }
    structs = [
        sf.struct(sf.lit(name).alias("key"), value.cast("binary").alias("value")) for name, value in headers.items()
    ]
    return rows.filter(sf.col(ERROR).isNotNull()).select(
        sf.col("_raw_key").alias("key"), sf.col("_value").alias("value"), sf.array(*structs).alias("headers")
    )
