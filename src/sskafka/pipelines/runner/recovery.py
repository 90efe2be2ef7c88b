"""What a run does before Spark starts about the transactions that the last run left in its topics.

What was decided is completed and the rest is aborted at once, so that readers need not wait for Spark. A run of the
same pipeline that is still alive is fenced by this and ends.
"""

from collections.abc import Iterator

from sskafka.pipelines.connector.committing import cluster_committer
from sskafka.pipelines.connector.options import BOOTSTRAP, Guarantee, SinkOptions, sink_options
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.files.model import DEAD_LETTERS, Pipeline, TopicSink


def topic_sinks(pipeline: Pipeline) -> Iterator[TopicSink]:
    """The topics that the pipeline writes, dead letters included."""
    yield from (sink for sink in pipeline.sinks if isinstance(sink, TopicSink))
    if pipeline.has_dead_letters:
        yield TopicSink(DEAD_LETTERS, pipeline.dead_letter_topic)


def transactional_prefix(pipeline: Pipeline, query: str) -> str:
    return f"{pipeline.name}-{query}"


def recover_topics(session: ClusterSession, pipeline: Pipeline, bootstrap: str, run: str) -> None:
    """All older drivers are fenced before anything is read: what one was about to decide would hide the others'."""
    committers = [
        cluster_committer(session, _options(sink, bootstrap), transactional_prefix(pipeline, sink.name))
        for sink in topic_sinks(pipeline)
        if sink.guarantee == Guarantee.EXACTLY_ONCE and pipeline.connector != "kafka"
    ]
    for committer in committers:
        committer.fence()
    for committer in committers:
        committer.recover(run)


def _options(sink: TopicSink, bootstrap: str) -> SinkOptions:
    return sink_options({BOOTSTRAP: bootstrap, "topic": sink.topic})
