"""Stages of Fetch: no topics, an unknown topic, an empty topic, and the content of log files, byte for byte."""

from sskafka.challenge.log_directory import PreparedTopic
from sskafka.challenge.requests import fetch
from sskafka.challenge.stage import Stage, StageContext
from sskafka.challenge.stages.base import list_fetch
from sskafka.model.errors import ErrorCode

_NOTHING = frozenset({None, b""})
_NONE_LISTED = frozenset({0, -1})


def fetch_no_topics(context: StageContext) -> None:
    context.ask(fetch({}), _answer(topics=0))


def fetch_an_unknown_topic(context: StageContext) -> None:
    expected = {
        **_partition(context.topics.unknown_id, error=ErrorCode.UNKNOWN_TOPIC_ID),
        "responses[0].partitions[0].records": _NOTHING,
    }
    context.ask(fetch({context.topics.unknown_id: [0]}), expected)


def fetch_from_an_empty_topic(context: StageContext) -> None:
    _fetch(context, context.topics.empty)


def fetch_one_message(context: StageContext) -> None:
    _fetch(context, context.topics.single)


def fetch_several_messages(context: StageContext) -> None:
    """Fetch the whole file, then only its last batch."""
    topic = context.topics.many
    _fetch(context, topic)
    _fetch(context, topic, offset=len(topic.batches[0]) - 1)


def _fetch(context: StageContext, topic: PreparedTopic, offset: int = 0) -> None:
    """Fetch partition 0 from `offset` on; each of its batches has one record."""
    batches = topic.batches[0]
    at = "responses[0].partitions[0]"
    expected = {
        **_partition(topic.topic_id),
        f"{at}.high_watermark": len(batches),
        f"{at}.last_stable_offset": len(batches),
        f"{at}.log_start_offset": 0,
        f"{at}.aborted_transactions.length": _NONE_LISTED,
        f"{at}.records": b"".join(batches[offset:]) or _NOTHING,
    }
    context.ask(fetch({topic.topic_id: [0]}, offset), expected)


def _partition(topic_id: bytes, error: ErrorCode = ErrorCode.NONE) -> dict[str, object]:
    return {
        **_answer(topics=1),
        "responses[0].topic_id": topic_id,
        "responses[0].partitions.length": 1,
        "responses[0].partitions[0].partition_index": 0,
        "responses[0].partitions[0].error_code": int(error),
    }


def _answer(topics: int) -> dict[str, object]:
    return {"throttle_time_ms": 0, "error_code": 0, "responses.length": topics}


STAGES = (
    Stage("gs0", "List Fetch in ApiVersions", list_fetch),
    Stage("dh6", "Fetch no topics", fetch_no_topics),
    Stage("hn6", "Fetch an unknown topic", fetch_an_unknown_topic),
    Stage("cm4", "Fetch from an empty topic", fetch_from_an_empty_topic),
    Stage("eg2", "Fetch one message from disk", fetch_one_message),
    Stage("fd8", "Fetch several messages from disk", fetch_several_messages),
)
