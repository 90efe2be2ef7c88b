"""Reset of a pipeline: where its progress is stored, and how it is removed.

checkpoints            deleted
Parquet files          moved: Spark keeps a log of batches with them, and would skip the batches that it finds there
consumer groups        deleted: they show the progress
Delta tables, topics   kept; batches of a new checkpoint are new to them
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sskafka.client.groups import committed_offsets, delete_group
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.files.pipeline import DEAD_LETTERS, Pipeline
from sskafka.pipelines.files.sink import ParquetSink

SPARK_LOG = "_spark_metadata"


@dataclass(frozen=True, slots=True)
class Step:
    """An action and its description."""

    text: str
    work: Callable[[], object]


def steps_to_reset(session: ClusterSession, pipeline: Pipeline, stamp: str) -> Iterator[Step]:
    """Yield what must be done; `stamp` is part of the names of moved directories."""
    for query in (*(sink.name for sink in pipeline.sinks), DEAD_LETTERS):
        checkpoint = Path(pipeline.checkpoint_root) / query
        if checkpoint.exists():
            yield Step(f"delete the checkpoint {checkpoint}", partial(_delete_checkpoint, checkpoint))
    for sink in pipeline.sinks:
        if isinstance(sink, ParquetSink):
            yield from _set_aside(Path(pipeline.resolved(sink.path)), stamp)
    for group in groups_of(pipeline):
        if session.run(committed_offsets(session.cluster, group)):
            yield Step(f"delete the consumer group {group}", partial(_delete, session, group))


def groups_of(pipeline: Pipeline) -> list[str]:
    """Return the groups to which progress is committed."""
    dead = [f"{DEAD_LETTERS}.{source.name}" for source in pipeline.sources if source.has_dead_letters]
    return [f"{pipeline.name}.{query}" for query in (*(sink.name for sink in pipeline.sinks), *dead)]


def _delete_checkpoint(checkpoint: Path) -> None:
    """Delete the checkpoint, and its parent directory if that is empty."""
    shutil.rmtree(checkpoint)
    if not any(checkpoint.parent.iterdir()):
        checkpoint.parent.rmdir()


def _set_aside(directory: Path, stamp: str) -> Iterator[Step]:
    aside = directory.with_name(f"{directory.name}-before-{stamp}")
    if (directory / SPARK_LOG).exists():
        yield Step(f"move {directory} to {aside}", partial(_move, directory, aside))


def _move(directory: Path, aside: Path) -> None:
    """Move the files without Spark's log, which contains their old paths."""
    directory.rename(aside)
    shutil.rmtree(aside / SPARK_LOG)


def _delete(session: ClusterSession, group: str) -> None:
    try:
        session.run(delete_group(session.cluster, group))
    except KafkaError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
