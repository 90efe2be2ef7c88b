"""Recovery of transactions that the last run left in its topics, before Spark starts.

Decided transactions are committed and the others aborted at once, so that readers need not wait for Spark. A run of the
same pipeline that is still alive is fenced by this and ends.
"""

import logging
from collections.abc import Iterator
from typing import NamedTuple

from sskafka.pipelines.connector.checkpoint import query_id_of
from sskafka.pipelines.connector.committing import cluster_committer
from sskafka.pipelines.connector.decision import Owner
from sskafka.pipelines.connector.errors import ConnectorError
from sskafka.pipelines.connector.options import BOOTSTRAP, Guarantee, SinkOptions, sink_options
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.files.pipeline import DEAD_LETTERS, Pipeline
from sskafka.pipelines.files.sink import TopicSink

logger = logging.getLogger(__name__)


def topic_sinks(pipeline: Pipeline) -> Iterator[TopicSink]:
    """Yield the topics that the pipeline writes, including that of dead letters."""
    yield from (sink for sink in pipeline.sinks if isinstance(sink, TopicSink))
    if pipeline.has_dead_letters:
        yield TopicSink(DEAD_LETTERS, pipeline.dead_letter_topic)


def transactional_prefix(pipeline: Pipeline, query: str) -> str:
    """Return the readable part of the prefix; the sink adds the id of the query's checkpoint."""
    return f"{pipeline.name}-{query}"


def checkpoint_of(pipeline: Pipeline, query: str) -> str:
    return f"{pipeline.checkpoint_root}/{query}"


class ExactSink(NamedTuple):
    """A query that writes a topic exactly once and has run before."""

    name: str
    topic: str
    query_id: str
    options: SinkOptions


def exact_sinks(pipeline: Pipeline, bootstrap: str, run: str = "") -> list[ExactSink]:
    """Return the queries whose checkpoint exists and can be read here."""
    found = []
    for sink in topic_sinks(pipeline):
        query_id = query_id_of(checkpoint_of(pipeline, sink.name))
        if query_id is not None and sink.guarantee == Guarantee.EXACTLY_ONCE and pipeline.connector != "kafka":
            found.append(ExactSink(sink.name, sink.topic, query_id, _options(pipeline, sink, bootstrap, run)))
    return found


def recover_topics(session: ClusterSession, pipeline: Pipeline, bootstrap: str, run: str) -> None:
    """Recover all queries that write a topic exactly once.

    An open transaction of one query may hide a part of another one that writes the same topic. A query whose recovery
    failed is therefore tried again when the transactions of the others have ended."""
    committers = [
        cluster_committer(session, sink.options, sink.query_id, Owner("", run))
        for sink in exact_sinks(pipeline, bootstrap, run)
    ]
    failed = []
    for committer in committers:
        try:
            committer.recover()
        except ConnectorError as error:
            logger.info("a query is recovered after the others: %s", error)
            failed.append(committer)
    for committer in failed:
        committer.recover()


def _options(pipeline: Pipeline, sink: TopicSink, bootstrap: str, run: str) -> SinkOptions:
    return sink_options(
        {
            **pipeline.client_options,
            BOOTSTRAP: bootstrap,
            "topic": sink.topic,
            "transactionalIdPrefix": transactional_prefix(pipeline, sink.name),
            "checkpointLocation": checkpoint_of(pipeline, sink.name),
            "pipelineRun": run,
        }
    )
