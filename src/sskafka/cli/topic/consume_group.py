"""`sskafka topic consume --group`: print the records of the partitions that the group assigns, and commit them."""

import asyncio
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import BinaryIO, NamedTuple, Protocol

import typer

from sskafka.cli.connecting import connected
from sskafka.cli.usage import UsageError
from sskafka.client.async_clients import POLL_RECORDS, AsyncConsumer
from sskafka.client.cluster import Cluster
from sskafka.client.config import ConsumerConfig, configured
from sskafka.client.errors import ConfigError
from sskafka.client.fetched import ConsumedRecord
from sskafka.client.offset_range import Anchor, Bound, OffsetRange
from sskafka.client.offsets import LATEST, list_offsets
from sskafka.model.ids import TopicPartition

_POLL_MS = 1000
_RESETS = {Anchor.START: "earliest", Anchor.END: "latest"}


class LinePrinter(Protocol):
    def line(self, record: ConsumedRecord) -> bytes: ...


class GroupRead(NamedTuple):
    """What to read as a member of a group."""

    topics: Sequence[str]
    properties: Mapping[str, str]
    """Properties of the consumer, `group.id` included."""
    number: int | None
    stops_at_end: bool
    any_replica: bool


def group_properties(group: str, wanted: OffsetRange, partitions: list[int] | None) -> dict[str, str]:
    """Return the properties of a member. Raise a usage error for options that have no meaning in a group."""
    if partitions:
        raise typer.BadParameter("the group assigns the partitions", param_hint="-p")
    if wanted.start.anchor not in _RESETS or wanted.stop not in {None, Bound(Anchor.END)}:
        raise typer.BadParameter(
            "with a group use start or end, for partitions without a committed offset", param_hint="-o"
        )
    return {
        "auto.offset.reset": _RESETS[wanted.start.anchor],
        "group.id": group,
        "enable.auto.commit": "false",  # records are committed when they are printed
    }


async def consume_as_member(bootstrap: str, read: GroupRead, printer: LinePrinter, out: BinaryIO) -> int:
    """Print and commit records, and return their number."""
    async with connected(bootstrap, dict(read.properties)) as cluster:
        ends = await _ends(cluster, read)
    try:
        consumer = AsyncConsumer(bootstrap, **read.properties)
    except ConfigError as error:
        raise UsageError(str(error)) from error
    async with _left_on_sigterm(), consumer:
        return await _copy(consumer, read, ends, printer, out)


@asynccontextmanager
async def _left_on_sigterm() -> AsyncIterator[None]:
    """Cancel the block at SIGTERM, so that the consumer leaves the group: others get its partitions at once."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    is_terminated = asyncio.Event()

    def end() -> None:
        if not is_terminated.is_set():  # `timeout` signals twice
            is_terminated.set()
            task.cancel()

    loop.add_signal_handler(signal.SIGTERM, end)
    try:
        yield
    except asyncio.CancelledError:
        if not is_terminated.is_set():
            raise
        raise typer.Exit(128 + signal.SIGTERM) from None
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


async def _copy(
    consumer: AsyncConsumer,
    read: GroupRead,
    ends: Mapping[TopicPartition, int],
    printer: LinePrinter,
    out: BinaryIO,
) -> int:
    """Print records, then commit them, until the group is at the ends or `number` records are printed."""
    await consumer.subscribe(read.topics[0] if len(read.topics) == 1 else read.topics, leader_only=not read.any_replica)
    left, printed = read.number, 0
    while left != 0 and not (read.stops_at_end and await _is_at_end(consumer, ends)):
        records = await consumer.poll(POLL_RECORDS if left is None else min(left, POLL_RECORDS), timeout_ms=_POLL_MS)
        if records:
            out.write(b"".join([printer.line(record) for record in records]))
            out.flush()
            await consumer.commit()
            left = None if left is None else left - len(records)
            printed += len(records)
    return printed


async def _ends(cluster: Cluster, read: GroupRead) -> dict[TopicPartition, int]:
    """Return the current ends of the topics, which must exist. A pattern has none."""
    if any(name.startswith("^") for name in read.topics):
        if read.stops_at_end or len(read.topics) > 1:
            raise typer.BadParameter(
                "a pattern must be the only topic, and cannot be read with -e or an end offset", param_hint="TOPIC"
            )
        return {}
    partitions = [
        TopicPartition(name, number) for name in read.topics for number in (await cluster.topic(name)).partitions
    ]
    isolation = configured(ConsumerConfig, read.properties).isolation
    found = await list_offsets(cluster, dict.fromkeys(partitions, LATEST), isolation=isolation)
    return {partition: end.offset for partition, end in found.items()}


async def _is_at_end(consumer: AsyncConsumer, ends: Mapping[TopicPartition, int]) -> bool:
    """Return whether the group has read everything up to `ends`: this member its partitions, the others theirs."""
    owned = consumer.assignment
    if any(consumer.position(*partition) < end for partition, end in ends.items() if partition in owned):
        return False
    others = {partition: end for partition, end in ends.items() if partition not in owned and end > 0}
    committed = await consumer.committed(others) if others else {}
    return all(committed.get(partition, 0) >= end for partition, end in others.items())
