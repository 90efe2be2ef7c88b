"""The files beside a segment in words, and whether its indexes agree with it."""

from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sskafka.cli.segment_dump import SEGMENT_SUFFIX, BatchInFile, base_offset_of, walk
from sskafka.storage import offset_index, producer_snapshot, time_index, transaction_index
from sskafka.storage.disk import OsDisk
from sskafka.storage.leader_epochs import LeaderEpochs
from sskafka.storage.producer_entry import NO_TRANSACTION, ProducerEntry

LEADER_EPOCHS_FILE = "leader-epoch-checkpoint"


class IndexEntry(NamedTuple):
    key: int
    """Of an offset index the offset, of a time index the timestamp."""
    value: int
    """The position, or the offset."""


def offset_index_entries(path: Path) -> Iterator[IndexEntry]:
    base_offset = base_offset_of(path)
    for place, (relative, position) in enumerate(offset_index.OffsetIndex.layout.iter_unpack(_whole_entries(path, 8))):
        if relative == 0 and place > 0:  # room that was set aside and never used
            return
        yield IndexEntry(base_offset + relative, position)


def time_index_entries(path: Path) -> Iterator[IndexEntry]:
    base_offset = base_offset_of(path)
    for place, (timestamp, relative) in enumerate(time_index.TimeIndex.layout.iter_unpack(_whole_entries(path, 12))):
        if timestamp == 0 and relative == 0 and place > 0:
            return
        yield IndexEntry(timestamp, base_offset + relative)


def _whole_entries(path: Path, entry_bytes: int) -> bytes:
    data = path.read_bytes()
    return data[: len(data) - len(data) % entry_bytes]


def offset_index_lines(path: Path) -> Iterator[str]:
    return (f"offset: {offset} position: {position}" for offset, position in offset_index_entries(path))


def time_index_lines(path: Path) -> Iterator[str]:
    return (f"timestamp: {timestamp} offset: {offset}" for timestamp, offset in time_index_entries(path))


def transaction_index_lines(path: Path) -> Iterator[str]:
    for aborted in transaction_index.TransactionIndex(OsDisk(), str(path)):
        yield (
            f"version: 0 producerId: {aborted.producer_id} firstOffset: {aborted.first_offset}"
            f" lastOffset: {aborted.last_offset} lastStableOffset: {aborted.last_stable_offset}"
        )


def producer_snapshot_lines(path: Path) -> Iterator[str]:
    for producer in producer_snapshot.decode_snapshot(path.read_bytes(), str(path)):
        yield _producer_line(producer)


def _producer_line(producer: ProducerEntry) -> str:
    first = producer.transaction_first_offset
    transaction = "OptionalLong.empty" if first == NO_TRANSACTION else f"OptionalLong[{first}]"
    line = (
        f"producerId: {producer.producer_id} producerEpoch: {producer.producer_epoch}"
        f" coordinatorEpoch: {producer.coordinator_epoch} currentTxnFirstOffset: {transaction}"
        f" lastTimestamp: {producer.last_timestamp}"
    )
    for batch in producer.batches:
        line += (
            f" firstSequence: {batch.first_sequence} lastSequence: {batch.last_sequence}"
            f" lastOffset: {batch.last_offset} offsetDelta: {batch.offset_delta} timestamp: {batch.timestamp}"
        )
    return line


def leader_epoch_lines(path: Path) -> Iterator[str]:
    epochs = LeaderEpochs.load(OsDisk(), str(path))
    return (f"epoch: {epoch} startOffset: {start}" for epoch, start in epochs.entries)


def offset_index_problems(path: Path) -> list[str]:
    """Entries that do not point at the batch they name."""
    batches = {batch.position: batch for batch in _batches_beside(path)}
    problems = []
    for offset, position in offset_index_entries(path):
        batch = batches.get(position)
        found = -1 if batch is None else batch.header.last_offset
        if found != offset and not (offset == base_offset_of(path) and position == 0):
            problems.append(f"  Index offset: {offset}, log offset: {found}")
    return problems


def time_index_problems(path: Path) -> list[str]:
    """Entries whose batch has another largest timestamp, and timestamps that do not grow."""
    batches = _batches_beside(path)
    last_offsets = [batch.header.last_offset for batch in batches]
    problems, previous = [], -1
    for timestamp, offset in time_index_entries(path):
        place = bisect_left(last_offsets, offset)
        found = batches[place].header.max_timestamp if place < len(batches) else -1
        if found != timestamp:
            problems.append(f"  Index timestamp: {timestamp}, log timestamp: {found}")
        if timestamp <= previous:
            problems.append(f"  Index timestamp: {timestamp}, previously indexed timestamp: {previous}")
        previous = timestamp
    return problems


def _batches_beside(path: Path) -> list[BatchInFile]:
    """The batches of the segment that an index belongs to, without their records."""
    with path.with_suffix(SEGMENT_SUFFIX).open("rb") as segment:
        return [batch._replace(data=b"") for batch in walk(segment)]
