"""Plan a reset of a group's offsets: each partition's committed offset and its new offset."""

from collections.abc import Iterable

from sskafka.cli.failures import CommandError
from sskafka.cli.offset_range import OffsetRange, resolve
from sskafka.cli.usage import UsageError
from sskafka.client.cluster import Cluster
from sskafka.client.groups import committed_offsets, describe_group
from sskafka.client.offsets import EARLIEST, LATEST, list_offsets
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition

Plan = dict[TopicPartition, tuple[int | None, int]]
"""The committed offset and the new one."""


async def plan_reset(
    cluster: Cluster, group: str, topics: Iterable[str] | None, target: OffsetRange | None, shift_by: int
) -> Plan:
    """Plan a move to `target`, or by `shift_by` records from the committed offsets. Always within the log."""
    await check_has_no_members(cluster, group)
    committed = {partition: found.offset for partition, found in (await committed_offsets(cluster, group)).items()}
    partitions = sorted(committed) if topics is None else await _named(cluster, topics)
    if not partitions:
        raise CommandError(f"group {group!r} has committed nothing", "use --topic to name the partitions")
    if target is not None:
        spans = await resolve(cluster, target, partitions, 0)
        return {partition: (committed.get(partition), span.start) for partition, span in spans.items()}
    known = {partition: committed[partition] for partition in partitions if partition in committed}
    if not known:
        raise CommandError(f"group {group!r} has committed nothing there", "use --to in place of --shift-by")
    starts = await list_offsets(cluster, dict.fromkeys(known, EARLIEST))
    ends = await list_offsets(cluster, dict.fromkeys(known, LATEST))
    return {
        partition: (offset, min(max(offset + shift_by, starts[partition].offset), ends[partition].offset))
        for partition, offset in known.items()
    }


async def check_has_no_members(cluster: Cluster, group: str) -> None:
    """Raise CommandError if the group has members. A group that does not exist yet has none."""
    try:
        described = await describe_group(cluster, group)
    except KafkaError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return
        raise
    if described.members:
        raise CommandError(
            f"group {group!r} has {len(described.members)} members", f"stop them; `sskafka group describe {group}`"
        )


async def _named(cluster: Cluster, topics: Iterable[str]) -> list[TopicPartition]:
    """Parse TOPIC, or TOPIC:0,1 for some of its partitions."""
    found: list[TopicPartition] = []
    for text in topics:
        name, colon, numbers = text.partition(":")
        view = await cluster.topic(name)
        chosen = _numbers(text, numbers) if colon else sorted(view.partitions)
        found += [TopicPartition(name, index) for index in chosen]
    return found


def _numbers(text: str, numbers: str) -> list[int]:
    words = numbers.split(",")
    if not all(word.isdecimal() for word in words):
        raise UsageError(f"--topic {text!r} is not TOPIC or TOPIC:0,1")
    return [int(word) for word in words]
