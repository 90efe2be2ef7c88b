"""The transformation of a pipeline: SQL over its tables, or a function of the user's."""

import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import assert_never

from pyspark.sql import DataFrame, SparkSession

from sskafka.pipelines.files.model import Pipeline, PythonTransform, SqlTransform
from sskafka.pipelines.runner.naming import naming_the_line
from sskafka.pipelines.runner.tables import with_expectations


class TransformError(Exception):
    """The user's transformation cannot be used."""


def transformed(spark: SparkSession, pipeline: Pipeline, tables: Mapping[str, DataFrame]) -> DataFrame:
    """The rows for the sinks."""
    match pipeline.transform:
        case SqlTransform(sql):
            for name, rows in tables.items():
                rows.createOrReplaceTempView(name)
            with naming_the_line(pipeline, "transform.sql"):
                result = spark.sql(sql)
        case PythonTransform() as python:
            with naming_the_line(pipeline, "transform.python"):
                result = _function(spark, pipeline, python)(spark, tables)
            if not isinstance(result, DataFrame):
                raise TransformError(
                    f"{python.location}:{python.function} returned {type(result).__name__}, not a DataFrame"
                )
        case other:
            assert_never(other)
    return with_expectations(result, pipeline, pipeline.expectations, "expectations")


def _function(
    spark: SparkSession, pipeline: Pipeline, python: PythonTransform
) -> Callable[[SparkSession, Mapping[str, DataFrame]], DataFrame]:
    try:
        module = _module(spark, pipeline, python.location)
    except ImportError as error:
        raise TransformError(f"{python.location} cannot be imported: {error}") from error
    function = getattr(module, python.function, None)
    if not callable(function):
        raise TransformError(f"{python.location} has no function {python.function}")
    chosen: Callable[[SparkSession, Mapping[str, DataFrame]], DataFrame] = function
    return chosen


def _module(spark: SparkSession, pipeline: Pipeline, location: str) -> ModuleType:
    """A module by name, or a file beside the pipeline file; that file is sent to the workers."""
    if not location.endswith(".py"):
        return importlib.import_module(location)
    file = (pipeline.path.parent / location).resolve()
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    spark.addArtifacts(str(file), pyfile=True)
    return importlib.import_module(file.stem)
