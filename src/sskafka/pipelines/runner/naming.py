"""Names of queries in Spark, and the lines of mistakes in a pipeline file that only Spark can find."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import AnalysisException

from sskafka.pipelines.files.pipeline import Pipeline
from sskafka.pipelines.runner.errors import explained

TOPICS_SHOWN_LENGTH_MAX = 100
_FROM = " from "
_LINE = re.compile(r"line (\d+),? pos")


class FileMistakeError(Exception):
    """Spark rejects a text of the file; the message begins with the file and the line."""


@contextmanager
def naming_the_line(pipeline: Pipeline, where: str) -> Iterator[None]:
    """Add the line of the field `where` to Spark's error; Spark counts lines from the beginning of the text."""
    try:
        yield
    except AnalysisException as error:
        found = _LINE.search(str(error))
        below = int(found[1]) - 1 if found else 0
        raise FileMistakeError(f"{pipeline.position(where, below)}: {explained(error)}") from error


def query_name(pipeline: Pipeline, query: str) -> str:
    """Return the name of a query in Spark. It contains the topics, because Spark's UI shows them nowhere else."""
    topics = ", ".join(source.pattern or ", ".join(source.topics) for source in pipeline.sources)
    shown = topics if len(topics) <= TOPICS_SHOWN_LENGTH_MAX else f"{topics[:TOPICS_SHOWN_LENGTH_MAX]}..."
    return f"{pipeline.name}.{query}{_FROM}{shown}"


def query_of(pipeline: Pipeline, name: str) -> str:
    """Return the query that has this name in Spark."""
    return name.removeprefix(f"{pipeline.name}.").partition(_FROM)[0]
