"""Rebuild a partition's producer state from the newest snapshot and the batches after it."""

from collections.abc import Iterable

from sskafka.records.batch import NO_TIMESTAMP, BatchHeader
from sskafka.storage.producers.history import recall_batches
from sskafka.storage.producers.snapshots import ProducerSnapshots
from sskafka.storage.producers.state import ProducerState
from sskafka.storage.segment import Segment
from sskafka.storage.transactions.index import AbortedTxn
from sskafka.storage.transactions.marker import read_marker_if_any


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
        recall_batches(segments, state, start_offset)
    if start_offset < end_offset:
        for segment in _reaching(segments, start_offset):
            _replay_segment(segment, state, start_offset, now_ms)
    for producer in state.producers.values():
        producer.last_seen_ms = max(producer.last_seen_ms, seen_ms.get(producer.producer_id, NO_TIMESTAMP))


def _reaching(segments: list[Segment], offset: int) -> list[Segment]:
    """Return the segments that end after `offset`."""
    ending_before = [following.base_offset <= offset for following in segments[1:]]
    return segments[sum(ending_before) :]


def _has_marker(segments: list[Segment], start_offset: int, end_offset: int) -> bool:
    """Return whether a transaction ends in [start, end)."""
    if start_offset >= end_offset:
        return False
    for segment in _reaching(segments, start_offset):
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
    marker = read_marker_if_any(segment.file.read_at(header.size_bytes, position), header)
    return None if marker is None else state.end_transaction(header, marker, header.base_offset, now_ms)
