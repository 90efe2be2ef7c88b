"""Restore what a snapshot does not hold: each producer's batches before its newest one.

A snapshot has one batch for each producer, but a producer with five batches in flight when the broker stopped retries
all of them. The batches just before the snapshot are read from the log, within a bounded number of index entries: a
batch that is about to be retried is among the last ones written.
"""

from collections import deque
from collections.abc import Iterator

from sskafka.records.batch import BatchHeader
from sskafka.storage.producers.entry import BATCHES_KEPT, ProducedBatch, ProducerEntry
from sskafka.storage.producers.state import ProducerState
from sskafka.storage.segment import Segment

_INDEX_ENTRIES_BACK = 256


def recall_batches(segments: list[Segment], state: ProducerState, snapshot_offset: int) -> None:
    """Complete the producers loaded from the snapshot at `snapshot_offset` with their earlier batches."""
    if not any(producer.batches for producer in state.producers.values()):
        return
    found: dict[int, deque[ProducedBatch]] = {}
    for header in _headers_before(segments, snapshot_offset):
        producer = state.producers.get(header.producer_id)
        if producer is not None and _is_earlier(header, producer):
            batches = found.setdefault(header.producer_id, deque(maxlen=BATCHES_KEPT - 1))
            batches.append(ProducedBatch.of(header, header.base_offset))
    for producer_id, batches in found.items():
        state.producers[producer_id].batches.extendleft(reversed(batches))


def _is_earlier(header: BatchHeader, producer: ProducerEntry) -> bool:
    same_epoch = header.producer_epoch == producer.producer_epoch
    return same_epoch and not header.is_control and header.last_offset < producer.last_offset


def _headers_before(segments: list[Segment], end_offset: int) -> Iterator[BatchHeader]:
    """Yield the newest batches before `end_offset`, oldest first."""
    for segment, position in reversed(list(_starts_backwards(segments, end_offset))):
        for _, header in segment.headers(position):
            if header.base_offset >= end_offset:
                return
            yield header


def _starts_backwards(segments: list[Segment], end_offset: int) -> Iterator[tuple[Segment, int]]:
    """Yield segments backwards from `end_offset`, and the position to start from in each."""
    left = _INDEX_ENTRIES_BACK
    for segment in reversed([segment for segment in segments if segment.base_offset < end_offset]):
        position = segment.offset_index.position_well_before(end_offset, left)
        yield segment, position or 0
        left -= segment.offset_index.count + 1
        if position is not None or left <= 0:
            return
