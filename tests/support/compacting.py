"""Compaction for tests: cleans a log in this process, on any disk, and reads what is left."""

from logs import decided_end

from sskafka.records.batch import BatchHeader, iter_headers
from sskafka.records.builder import NewRecord, build_batch
from sskafka.records.record import Record, decode_records
from sskafka.storage.compaction.cleanable import find_cleanable
from sskafka.storage.compaction.cleaning import clean_log
from sskafka.storage.compaction.cleaning_job import (
    CleanedGroup,
    CleaningJob,
    CleaningLimits,
    CleaningStats,
    decode_job,
    encode_job,
)
from sskafka.storage.log import Log

COMPACTED_SETTINGS = {"cleanup_policy": ("compact",)}
LIMITS = CleaningLimits(1 << 20, 0.9, 1e300, 1 << 16)


def keyed(*pairs: tuple[bytes | None, bytes | None], timestamp: int = 0, **fields: object) -> bytearray:
    """A batch of keys and values."""
    return build_batch([NewRecord(key, value, (), timestamp) for key, value in pairs], **fields)  # type: ignore[arg-type]


def put(log: Log, *pairs: tuple[bytes | None, bytes | None], now_ms: int, epoch: int = 0, **fields: object) -> int:
    """The base offset."""
    return log.append_as_leader(keyed(*pairs, timestamp=now_ms, **fields), epoch, now_ms).base_offset


def job_for(
    log: Log, now_ms: int, limits: CleaningLimits = LIMITS, last_stable_offset: int | None = None
) -> CleaningJob:
    """Everything that may be cleaned, as it travels to the cleaner."""
    stable = decided_end(log) if last_stable_offset is None else last_stable_offset
    return decode_job(encode_job(find_cleanable(log, stable, now_ms).job(now_ms, limits)))


def compact(
    log: Log, now_ms: int, limits: CleaningLimits = LIMITS, last_stable_offset: int | None = None
) -> CleaningStats | None:
    """What the broker and its cleaner do together; None when there is nothing to clean."""
    stable = decided_end(log) if last_stable_offset is None else last_stable_offset
    if not find_cleanable(log, stable, now_ms).dirty_bytes:
        return None
    truncations = log.truncations
    for answer in clean_log(log.log_directory.disk, job_for(log, now_ms, limits, stable), lambda size: None):
        if isinstance(answer, CleanedGroup):
            assert log.swap_in(answer.base_offsets, truncations)
        elif isinstance(answer, CleaningStats):
            log.first_dirty_offset = answer.end_offset
            return answer
    raise AssertionError("the cleaner did not come to an end")


def batches_of(log: Log) -> list[tuple[BatchHeader, list[Record]]]:
    """Everything in the log, markers and empty batches too."""
    slices = log.read(log.log_start_offset, 1 << 40, log.log_end_offset)
    data = memoryview(b"".join(bytes(piece.read()) for piece in slices))
    return [(header, list(decode_records(data, header, position))) for position, header in iter_headers(data)]


def pairs_of(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    """Offset, key and value of every data record."""
    return [
        (record.offset, record.key, record.value)
        for header, records in batches_of(log)
        if not header.is_control
        for record in records
    ]


def committed_pairs(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    """Offset, key and value as a read_committed consumer sees them: by the list of aborted transactions."""
    aborted = log.aborted_transactions(log.log_start_offset, log.log_end_offset)
    ahead = sorted(aborted, key=lambda one: one.first_offset)
    aborting: set[int] = set()
    found = []
    for header, records in batches_of(log):
        while ahead and ahead[0].first_offset <= header.last_offset:
            aborting.add(ahead.pop(0).producer_id)
        if header.is_control:
            aborting.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborting):
            found += [(record.offset, record.key, record.value) for record in records]
    return found
