"""Names of partition directories in a log directory.

    <topic>-<n>                        a partition; n counts from 0, or from 1 with log.dir.partition.base=1
    <topic>-<n>.<32 hex digits>-delete   deleted; its files will be removed
    <topic>-<n>.<32 hex digits>-stray    stray: its topic id is not that of the current topic of this name
    <topic>-<n>.<32 hex digits>-future   a copy in progress of a partition in another log directory

The metadata log's directory is always `__cluster_metadata-0`, whatever the base.
"""

import re

from sskafka.model.ids import METADATA_TOPIC, TopicPartition, topic_name_problem

DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
FUTURE_SUFFIX = "-future"
_NAME_LENGTH_MAX = 255
_NUMBERED = re.compile(r"(.+)-(0|[1-9]\d{0,9})")
_SET_ASIDE = re.compile(r"(.+)\.[0-9a-f]{32}-(delete|stray|future)")


def directory_name(topic_partition: TopicPartition, partition_base: int = 0) -> str:
    topic, partition = topic_partition
    return f"{topic}-{partition if topic == METADATA_TOPIC else partition + partition_base}"


def parse_directory_name(name: str, partition_base: int = 0) -> TopicPartition | None:
    """Return the partition, or None if the directory does not belong to a partition."""
    match = _NUMBERED.fullmatch(name)
    if match is None or _SET_ASIDE.fullmatch(name) or topic_name_problem(match[1]) is not None:
        return None
    number = int(match[2]) - (0 if match[1] == METADATA_TOPIC else partition_base)
    return TopicPartition(match[1], number) if number >= 0 else None


def set_aside_name(name: str, unique_id: str, suffix: str) -> str:
    """Return the name for a directory that is taken out of service. Long topic names are cut to the file system's
    limit."""
    unique_suffix = f".{unique_id}{suffix}"
    return name[: _NAME_LENGTH_MAX - len(unique_suffix)] + unique_suffix


def parse_future_name(name: str, partition_base: int = 0) -> TopicPartition | None:
    """Return the partition of a future copy, or None for other directories."""
    match = _SET_ASIDE.fullmatch(name) if name.endswith(FUTURE_SUFFIX) else None
    return None if match is None else parse_directory_name(match[1], partition_base)


def is_deleted(name: str) -> bool:
    return name.endswith(DELETE_SUFFIX) and _SET_ASIDE.fullmatch(name) is not None
