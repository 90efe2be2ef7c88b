"""Rebuild a partition's producer state from the newest snapshot and the batches after it."""

from collections import deque
from collections.abc import Iterable, Iterator

from sskafka.records.batch import NO_TIMESTAMP, BatchHeader
from sskafka.storage.producers.entry import BATCHES_KEPT, ProducedBatch, ProducerEntry
from sskafka.storage.producers.snapshots import ProducerSnapshots
from sskafka.storage.producers.state import ProducerState
from sskafka.storage.segment import Segment
from sskafka.storage.transactions.index import AbortedTxn
from sskafka.storage.transactions.marker import maybe_read_marker

_INDEX_ENTRIES_BACK = 256


def rebuild_producers(
    segments: Iterable[Segment],
    snapshots: ProducerSnapshots,
    state: ProducerState,
    end_offset: int,
    now_ms: int = NO_TIMESTAMP,
    high_watermark: int | None = None,
) -> None:
    """Make `state` that of a log which ends at `end_offset`. Snapshots beyond that offset are removed.

    Without `now_ms` the producers keep their last-seen times. A snapshot does not tell which transactions ended at or
    above the `high_watermark`; if there are any, the rebuild starts from an older snapshot."""
    segments = list(segments)
    seen_ms = {producer.producer_id: producer.last_seen_ms for producer in state.producers.values()}
    snapshots.remove_from(end_offset)
    snapshot = snapshots.load_before(end_offset)
    if snapshot is not None and high_watermark is not None and _has_marker(segments, high_watermark, snapshot[0]):
        snapshot = snapshots.load_before(max(high_watermark, segments[0].base_offset))
    start_offset = 0
    state.clear()
    if snapshot is not None:
        start_offset, producers = snapshot
        state.load(producers, now_ms)
        load_recent_batches(segments, state, start_offset)
    if start_offset < end_offset:
        for segment in _segments_after(segments, start_offset):
            _replay_segment(segment, state, start_offset, now_ms)
    for producer in state.producers.values():
        producer.last_seen_ms = max(producer.last_seen_ms, seen_ms.get(producer.producer_id, NO_TIMESTAMP))


def _segments_after(segments: list[Segment], offset: int) -> list[Segment]:
    """Return the segments that end after `offset`."""
    ending_before = [following.base_offset <= offset for following in segments[1:]]
    return segments[sum(ending_before) :]


def _has_marker(segments: list[Segment], start_offset: int, end_offset: int) -> bool:
    """Return whether a transaction ends in [start, end)."""
    if start_offset >= end_offset:
        return False
    for segment in _segments_after(segments, start_offset):
        for _, header in segment.headers(segment.position_of(start_offset)):
            if header.base_offset >= end_offset:
                return False
            if header.is_control and header.producer_id >= 0:
                return True
    return False


def _replay_segment(segment: Segment, state: ProducerState, start_offset: int, now_ms: int) -> None:
    """Replay the batches from `start_offset` on. The segment's transaction index is valid already."""
    for position, header in segment.headers(segment.position_of(start_offset)):
        if header.producer_id >= 0:
            replay_batch(state, segment, position, header, now_ms)


def replay_batch(
    state: ProducerState, segment: Segment, position: int, header: BatchHeader, now_ms: int
) -> AbortedTxn | None:
    """Apply a batch to its producer. Return an abort's entry for the transaction index."""
    if not header.is_control:
        state.add(header, header.base_offset, now_ms)
        return None
    marker = maybe_read_marker(segment.file.read_at(header.size_bytes, position), header)
    return None if marker is None else state.end_transaction(header, marker, header.base_offset, now_ms)


def load_recent_batches(segments: list[Segment], state: ProducerState, snapshot_offset: int) -> None:
    """Complete the producers loaded from the snapshot at `snapshot_offset` with their earlier batches.

    A snapshot has one batch for each producer, but a producer with five batches in flight when the broker stopped
    retries all of them. The batches just before the snapshot are read from the log, within a bounded number of index
    entries: a batch that is about to be retried is among the last ones written."""
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
