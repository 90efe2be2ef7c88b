"""The tables that a pipeline makes from its sources: steps and the result, by SQL or by a function of the user."""

import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TypeAlias, assert_never

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from sskafka.pipelines.files.pipeline import Pipeline
from sskafka.pipelines.files.transform import PythonTransform, SqlTransform, Transform
from sskafka.pipelines.runner.errors import raised_in_user_code
from sskafka.pipelines.runner.naming import naming_the_line
from sskafka.pipelines.runner.tables import with_expectations

TransformFunction: TypeAlias = Callable[[SparkSession, Mapping[str, DataFrame]], DataFrame]


class TransformError(Exception):
    """The user's transformation cannot be used."""


def transformed(
    spark: SparkSession, pipeline: Pipeline, sources: Mapping[str, DataFrame], wanted: str = ""
) -> DataFrame:
    """Return the rows of the table `wanted`, which is a source or a step; of the result if it is empty.

    Spark runs only what the returned rows depend on."""
    tables = dict(sources)
    for step in pipeline.steps:
        if wanted in tables:
            break
        where = f"steps.{step.name}"
        rows = _applied(spark, pipeline, step.transform, tables, where)
        tables[step.name] = with_expectations(rows, pipeline, step.expectations, f"{where}.expectations")
    if wanted:
        return tables[wanted]
    result = _applied(spark, pipeline, pipeline.transform, tables, "transform")
    return with_expectations(result, pipeline, pipeline.expectations, "expectations")


def _applied(
    spark: SparkSession, pipeline: Pipeline, transform: Transform, tables: Mapping[str, DataFrame], where: str
) -> DataFrame:
    match transform:
        case SqlTransform(sql):
            for name, rows in tables.items():
                rows.createOrReplaceTempView(name)
            with naming_the_line(pipeline, f"{where}.sql"):
                return spark.sql(sql)
        case PythonTransform() as python:
            with naming_the_line(pipeline, f"{where}.python"):
                result = _called(_function(spark, pipeline, python), spark, tables)
            if not isinstance(result, DataFrame):
                raise TransformError(
                    f"{python.location}:{python.function} returned {type(result).__name__}, not a DataFrame"
                )
            return result
        case other:
            assert_never(other)


def _called(function: TransformFunction, spark: SparkSession, tables: Mapping[str, DataFrame]) -> DataFrame:
    """Call the user's function; report its errors with file and line instead of a stack trace."""
    try:
        return function(spark, tables)
    except AnalysisException:
        raise  # Spark's error about the query is reported with the line of the pipeline file
    except Exception as error:
        raise TransformError(raised_in_user_code(error)) from error


def _function(spark: SparkSession, pipeline: Pipeline, python: PythonTransform) -> TransformFunction:
    try:
        module = _module(spark, pipeline, python.location)
    except Exception as error:  # any error: this runs code of the user
        raise TransformError(f"{python.location} cannot be imported: {raised_in_user_code(error)}") from error
    function = getattr(module, python.function, None)
    if not callable(function):
        raise TransformError(f"{python.location} has no function {python.function}")
    chosen: TransformFunction = function
    return chosen


def _module(spark: SparkSession, pipeline: Pipeline, location: str) -> ModuleType:
    """Return a module by name, or from a file next to the pipeline file, which is sent to the workers."""
    if not location.endswith(".py"):
        return importlib.import_module(location)
    file = (pipeline.path.parent / location).resolve()
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    spark.addArtifacts(str(file), pyfile=True)
    return importlib.import_module(file.stem)
