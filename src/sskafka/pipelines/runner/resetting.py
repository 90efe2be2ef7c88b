"""Reset of a pipeline: where its progress is stored, and how it is removed.

transactions           ended: only the checkpoint names them, and readers of committed records wait for open ones
checkpoints            deleted
Parquet files          moved: Spark keeps a log of batches with them, and would skip the batches that it finds there
consumer groups        deleted: they show the progress
Delta tables, topics   kept; batches of a new checkpoint are new to them
"""

import shutil
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sskafka.client.groups import committed_offsets, delete_group
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.pipelines.connector.checkpoint import local_path
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.files.pipeline import DEAD_LETTERS, Pipeline
from sskafka.pipelines.runner.leftovers import parquet_paths
from sskafka.pipelines.runner.recovery import checkpoint_of, exact_sinks, recover_topics, topic_sinks
from sskafka.pipelines.runner.settling import Settling

SPARK_LOG = "_spark_metadata"


class ResetError(Exception):
    """The progress of the pipeline cannot be deleted from here."""


@dataclass(frozen=True, slots=True)
class Step:
    """An action and its description."""

    text: str
    work: Callable[[], object]


def steps_to_reset(session: ClusterSession, pipeline: Pipeline, bootstrap: str, stamp: str) -> Iterator[Step]:
    """Yield what must be done; `stamp` is part of the names of moved directories."""
    queries = [*(sink.name for sink in pipeline.sinks), DEAD_LETTERS]
    checkpoints = [checkpoint_of(pipeline, query) for query in queries]
    directories = parquet_paths(pipeline)
    _refuse_remote(pipeline, checkpoints, directories)
    yield from _settling(session, pipeline, bootstrap)
    for checkpoint in map(_local, checkpoints):
        if checkpoint.exists():
            yield Step(f"delete the checkpoint {checkpoint}", partial(_delete_checkpoint, checkpoint))
    for directory in map(_local, directories):
        yield from _set_aside(directory, stamp)
    for group in groups_of(pipeline):
        if session.run(committed_offsets(session.cluster, group)):
            yield Step(f"delete the consumer group {group}", partial(_delete, session, group))


def _settling(session: ClusterSession, pipeline: Pipeline, bootstrap: str) -> Iterator[Step]:
    """Yield a step that ends the transactions of a killed run, if the pipeline writes topics in transactions."""
    run = f"reset-{uuid.uuid4().hex[:8]}"
    sinks = exact_sinks(pipeline, bootstrap, run)
    if sinks:
        found = [step.text for sink in sinks for step in Settling(session, sink, run).steps(None, None, moved=False)]
        text = f"settle the transactions of {', '.join(sink.name for sink in sinks)}"
        work = partial(recover_topics, session, pipeline, bootstrap, run)
        yield Step(f"{text}: {', '.join(found) or 'none is open'}", work)


def groups_of(pipeline: Pipeline) -> list[str]:
    """Return the groups to which progress is committed."""
    dead = [f"{DEAD_LETTERS}.{source.name}" for source in pipeline.sources if source.has_dead_letters]
    return [f"{pipeline.name}.{query}" for query in (*(sink.name for sink in pipeline.sinks), *dead)]


def _refuse_remote(pipeline: Pipeline, checkpoints: list[str], directories: list[str]) -> None:
    """Raise if reset would find only some of the places: the checkpoint and the files must be removed together."""
    if all(local_path(place) is not None for place in (*checkpoints, *directories)):
        return
    places = [pipeline.checkpoint_root, *(f"{directory}/{SPARK_LOG}" for directory in directories)]
    settle = (
        "settle transactions with `sskafka pipeline recover --execute`, then " if any(topic_sinks(pipeline)) else ""
    )
    raise ResetError(
        f"reset deletes only files on this machine. To start from the beginning, {settle}"
        f"delete {', '.join(places)} and the consumer groups {', '.join(groups_of(pipeline))}"
    )


def _local(place: str) -> Path:
    path = local_path(place)
    assert path is not None
    return path


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
