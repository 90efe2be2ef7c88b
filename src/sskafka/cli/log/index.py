"""Index, snapshot and epoch files as text: kafka-dump-log's lines for their contents and their problems."""

from collections.abc import Iterator
from pathlib import Path

from sskafka.storage import offset_index, time_index
from sskafka.storage.leader_epochs import LeaderEpochs
from sskafka.storage.producers import snapshot as producer_snapshot
from sskafka.storage.producers.entry import NO_TRANSACTION, ProducerEntry
from sskafka.storage.segment import LOG_SUFFIX
from sskafka.storage.transactions import index as transaction_index
from sskafka.storage.verification.directory import ReadOnlyDisk
from sskafka.storage.verification.index import (
    batch_places,
    offset_index_entries,
    offset_index_mismatches,
    time_index_entries,
    time_index_problems,
)

LEADER_EPOCHS_FILE = "leader-epoch-checkpoint"
INDEX_SUFFIXES = frozenset({offset_index.SUFFIX, time_index.SUFFIX})


def offset_index_lines(path: Path) -> Iterator[str]:
    return (f"offset: {offset} position: {position}" for offset, position in offset_index_entries(path))


def time_index_lines(path: Path) -> Iterator[str]:
    return (f"timestamp: {timestamp} offset: {offset}" for timestamp, offset in time_index_entries(path))


def transaction_index_lines(path: Path) -> Iterator[str]:
    for aborted in transaction_index.TransactionIndex(ReadOnlyDisk(), str(path)):
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
    epochs = LeaderEpochs.load(ReadOnlyDisk(), str(path))
    return (f"epoch: {epoch} startOffset: {start}" for epoch, start in epochs.entries)


def index_problem_lines(path: Path) -> list[str]:
    """Return the mismatches between index and segment, none if there is no segment to compare with."""
    segment = path.with_suffix(LOG_SUFFIX)
    if path.suffix not in INDEX_SUFFIXES or not segment.is_file():
        return []
    if path.suffix == offset_index.SUFFIX:
        return _offset_problem_lines(path, segment)
    return _time_problem_lines(path, segment)


def _offset_problem_lines(path: Path, segment: Path) -> list[str]:
    wrong = offset_index_mismatches(path, batch_places(segment))
    lines = [f"  Index offset: {index}, log offset: {log}" for index, log in reversed(wrong)]
    return [f"Mismatches in :{path.absolute()}", *lines] if lines else []


def _time_problem_lines(path: Path, segment: Path) -> list[str]:
    problems = time_index_problems(path, batch_places(segment))
    lines: list[str] = []
    if problems.wrong:
        lines.append(f"Found timestamp mismatch in :{path.absolute()}")
        lines += [f"  Index timestamp: {index}, log timestamp: {log}" for index, log in problems.wrong]
    if problems.unordered:
        lines.append(f"Found out of order timestamp in :{path.absolute()}")
        lines += [
            f"  Index timestamp: {index}, Previously indexed timestamp: {before}"
            for index, before in problems.unordered
        ]
    if problems.unfound:
        lines.append("The following indexed offsets are not found in the log.")
        lines += [f"Indexed offset: {index}, found log offset: {log}" for index, log in problems.unfound]
    return lines
