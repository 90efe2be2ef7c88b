"""Stages of DescribeTopicPartitions: unknown topics, one or several partitions and topics, pagination."""

from collections.abc import Iterable

from sskafka.challenge.log_directory import NODE_ID, PreparedTopic
from sskafka.challenge.requests import describe_topic_partitions
from sskafka.challenge.stage import Stage, StageContext
from sskafka.challenge.stages.base import list_describe_topic_partitions
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ZERO_UUID


def describe_an_unknown_topic(context: StageContext) -> None:
    name = context.topics.unknown_name
    expected = {
        **_answer(topics=1),
        "topics[0].error_code": int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        "topics[0].name": name,
        "topics[0].topic_id": ZERO_UUID,
        "topics[0].is_internal": False,
        "topics[0].partitions.length": 0,
    }
    context.ask(describe_topic_partitions([name]), expected)


def describe_one_partition(context: StageContext) -> None:
    _describe(context, [context.topics.lone])


def describe_several_partitions(context: StageContext) -> None:
    _describe(context, [context.topics.split])


def describe_several_topics(context: StageContext) -> None:
    _describe(context, [context.topics.split, context.topics.third, context.topics.lone])


def describe_page_by_page(context: StageContext) -> None:
    """With a limit of one partition, the response ends with a cursor, at which the next request continues."""
    topic = context.topics.split
    last = topic.partitions[-1]
    for partition in topic.partitions:
        cursor = None if partition == 0 else (topic.name, partition)
        request = describe_topic_partitions([topic.name], partition_limit=1, cursor=cursor)
        expected = {**_answer(topics=1), **_topic(0, topic, [partition])}
        if partition < last:
            del expected["next_cursor"]
            expected |= {"next_cursor.topic_name": topic.name, "next_cursor.partition_index": partition + 1}
        context.ask(request, expected)


def _describe(context: StageContext, topics: list[PreparedTopic]) -> None:
    """Describe topics in any order; the response must be sorted by name."""
    expected: dict[str, object] = _answer(topics=len(topics))
    for number, topic in enumerate(sorted(topics, key=lambda one: one.name)):
        expected |= _topic(number, topic, topic.partitions)
    context.ask(describe_topic_partitions([topic.name for topic in topics]), expected)


def _answer(topics: int) -> dict[str, object]:
    return {"throttle_time_ms": 0, "topics.length": topics, "next_cursor": None}


def _topic(number: int, topic: PreparedTopic, partitions: Iterable[int]) -> dict[str, object]:
    at, wanted = f"topics[{number}]", list(partitions)
    fields: dict[str, object] = {
        f"{at}.error_code": 0,
        f"{at}.name": topic.name,
        f"{at}.topic_id": topic.topic_id,
        f"{at}.is_internal": False,
        f"{at}.partitions.length": len(wanted),
    }
    for index, partition in enumerate(wanted):
        here = f"{at}.partitions[{index}]"
        fields |= {
            f"{here}.error_code": 0,
            f"{here}.partition_index": partition,
            f"{here}.leader_id": NODE_ID,
            f"{here}.replica_nodes.length": 1,
            f"{here}.replica_nodes[0]": NODE_ID,
            f"{here}.isr_nodes.length": 1,
            f"{here}.isr_nodes[0]": NODE_ID,
            f"{here}.offline_replicas.length": 0,
        }
    return fields


STAGES = (
    Stage("yk1", "List DescribeTopicPartitions in ApiVersions", list_describe_topic_partitions),
    Stage("vt6", "Describe an unknown topic", describe_an_unknown_topic),
    Stage("ea7", "Describe a topic with one partition", describe_one_partition),
    Stage("ku4", "Describe a topic with several partitions", describe_several_partitions),
    Stage("wq2", "Describe several topics", describe_several_topics),
    Stage("page", "Describe partitions page by page", describe_page_by_page),
)
