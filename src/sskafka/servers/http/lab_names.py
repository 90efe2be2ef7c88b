"""The lab's names: partitions are `topic-1`, counted from 1; brokers are "2", 2 or "broker-2".

Only this module of the HTTP server converts between the lab's numbers and the cluster's.
"""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from sskafka.model.ids import INTERNAL_TOPICS, METADATA_TOPIC, TopicPartition, topic_name_problem
from sskafka.servers.http.problems import BAD_REQUEST, NOT_FOUND, Problem

PARTITION_MAX = 2**31 - 1
BROKER_ID_MAX = 2**31 - 1
_TOPIC_PARTITION = re.compile(r"(?P<topic>.+)-(?P<number>[0-9]{1,10})", re.ASCII)
_BROKER_ID = re.compile(r"(?:broker-)?(?P<id>[0-9]{1,10})", re.ASCII)


def parse_topic_partition(text: str) -> TopicPartition:
    """Parse a partition: `mytopic-1` is partition 0 of mytopic. An invalid name is reported as not found."""
    match = _TOPIC_PARTITION.fullmatch(text)
    if match is None or not 1 <= int(match["number"]) <= PARTITION_MAX:
        raise Problem(NOT_FOUND, f"there is no partition {text!r}; partitions are named like mytopic-1")
    if is_hidden(match["topic"]):
        raise Problem(NOT_FOUND, f"there is no topic {match['topic']}")
    return TopicPartition(match["topic"], int(match["number"]) - 1)


def partition_id(topic: str, partition: int) -> str:
    return f"{topic}-{partition + 1}"


def check_new_topic_name(name: str) -> None:
    """Reject names with dashes: the lab's topics have none, so that the dash in `mytopic-1` is the only one."""
    text = topic_name_problem(name)
    if text is None and "-" in name:
        text = f'the topic name {name!r} contains dashes ("-")'
    if text is None and is_hidden(name):
        text = f"{name} is an internal topic"
    if text is not None:
        raise Problem(BAD_REQUEST, text)


def is_hidden(topic: str) -> bool:
    return topic in INTERNAL_TOPICS or topic == METADATA_TOPIC


def _broker_id(value: Any) -> int:
    match = None if isinstance(value, bool) else _BROKER_ID.fullmatch(str(value))
    if match is None or int(match["id"]) > BROKER_ID_MAX:
        raise ValueError('a broker id is a number, such as "2"')
    return int(match["id"])


BrokerId = Annotated[
    int,
    BeforeValidator(_broker_id),
    WithJsonSchema({"type": "string", "pattern": r"^(broker-)?[0-9]{1,9}$", "examples": ["2"]}),
]
