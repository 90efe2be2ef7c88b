"""Plan new offsets for a group without members. The plan is shown first; `groups.commit_offsets` applies it."""

from collections.abc import Iterable, Sequence

from sskafka.client.cluster import Cluster
from sskafka.client.groups import committed_offsets, describe_group
from sskafka.client.offset_range import OffsetRange, resolve
from sskafka.client.offsets import EARLIEST, LATEST, list_offsets
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition

ResetPlan = dict[TopicPartition, tuple[int | None, int]]
"""The committed offset and the new one."""


class NothingCommittedError(KafkaError):
    """The group has committed no offset that could be moved."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_REQUEST, message)


async def plan_reset(
    cluster: Cluster,
    group_id: str,
    partitions: Sequence[TopicPartition] | None,
    target: OffsetRange | None,
    shift_by: int,
) -> ResetPlan:
    """Plan a move to `target`, or by `shift_by` records from the committed offsets. Always within the log.

    `partitions` is None for all that the group has committed. Raise KafkaError NON_EMPTY_GROUP if the group has
    members, and NothingCommittedError."""
    await check_has_no_members(cluster, group_id)
    committed = {partition: found.offset for partition, found in (await committed_offsets(cluster, group_id)).items()}
    chosen = sorted(committed) if partitions is None else partitions
    if not chosen:
        raise NothingCommittedError(f"group {group_id!r} has committed nothing; name the topics")
    if target is not None:
        spans = await resolve(cluster, target, chosen, 0)
        return {partition: (committed.get(partition), span.start) for partition, span in spans.items()}
    known = {partition: committed[partition] for partition in chosen if partition in committed}
    if not known:
        raise NothingCommittedError(f"group {group_id!r} has committed nothing there; name an offset to move to")
    starts = await list_offsets(cluster, dict.fromkeys(known, EARLIEST))
    ends = await list_offsets(cluster, dict.fromkeys(known, LATEST))
    return {
        partition: (offset, min(max(offset + shift_by, starts[partition].offset), ends[partition].offset))
        for partition, offset in known.items()
    }


async def check_has_no_members(cluster: Cluster, group_id: str) -> None:
    """Raise KafkaError NON_EMPTY_GROUP if the group has members. A group that does not exist yet has none."""
    try:
        described = await describe_group(cluster, group_id)
    except KafkaError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return
        raise
    if described.members:
        count = len(described.members)
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP, f"group {group_id!r} has {count} members")


async def named_partitions(cluster: Cluster, topics: Iterable[str]) -> list[TopicPartition]:
    """Parse TOPIC, or TOPIC:0,1 for some of its partitions. Raise ValueError for another form."""
    found: list[TopicPartition] = []
    for text in topics:
        name, colon, numbers = text.partition(":")
        chosen = _numbers(text, numbers) if colon else sorted((await cluster.topic(name)).partitions)
        found += [TopicPartition(name, index) for index in chosen]
    return list(dict.fromkeys(found))


def _numbers(text: str, numbers: str) -> list[int]:
    words = numbers.split(",")
    if not all(word.isdecimal() and word.isascii() and len(word) < 10 for word in words):
        raise ValueError(f"{text!r} is not TOPIC or TOPIC:0,1")
    return [int(word) for word in words]
