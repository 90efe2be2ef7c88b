"""Logs for tests: opened on any disk, filled with batches, read back as what a consumer would see."""

from collections.abc import Iterable
from typing import Any

from sskafka.model.ids import TopicPartition
from sskafka.records.batch import iter_headers
from sskafka.records.builder import NewRecord, build_batch
from sskafka.records.control import ControlType, EndTransactionMarker, control_key
from sskafka.records.record import decode_records
from sskafka.storage.disk import Disk
from sskafka.storage.log import Log
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_directory import LogDirHealth
from sskafka.storage.recovery.opening import open_log

NOW_MS = 1_700_000_000_000
TP = TopicPartition("orders", 0)
DIRECTORY = "/data/orders-0"


def reopen(disk: Disk, config: LogConfig | None = None, directory: str = DIRECTORY, **options: Any) -> Log:
    """As after a start of the broker; unclean unless the options say otherwise."""
    options.setdefault("now_ms", NOW_MS)
    root = directory.rpartition("/")[0]
    return open_log(LogDirHealth(disk, root), directory, TP, config or LogConfig(), **options)


def batch(*values: bytes, timestamp: int = NOW_MS, key: bytes | None = b"k", **fields: Any) -> bytearray:
    return build_batch([NewRecord(key, value, (), timestamp) for value in values], **fields)


def marker(producer_id: int, epoch: int, *, commit: bool, coordinator_epoch: int = 0, **fields: Any) -> bytearray:
    ending = EndTransactionMarker(ControlType.COMMIT if commit else ControlType.ABORT, coordinator_epoch)
    record = NewRecord(control_key(ending.type), ending.value(), (), NOW_MS)
    return build_batch(
        [record], producer_id=producer_id, producer_epoch=epoch, transactional=True, control=True, **fields
    )


def append(log: Log, *values: bytes, epoch: int = 0, now_ms: int = NOW_MS, **fields: Any) -> int:
    """The base offset that the records got."""
    return log.append_as_leader(batch(*values, **fields), epoch, now_ms).base_offset


def read_bytes(
    log: Log, offset: int, max_bytes: int = 1 << 30, up_to: int | None = None, min_one: bool = True
) -> bytes:
    up_to_offset = log.log_end_offset if up_to is None else up_to
    return b"".join(bytes(piece.read()) for piece in log.read(offset, max_bytes, up_to_offset, min_one))


def records(data: bytes) -> list[tuple[int, bytes | None]]:
    """Offsets and values of whole batches."""
    view = memoryview(data)
    return [
        (record.offset, record.value)
        for position, header in iter_headers(view)
        for record in decode_records(view, header, position)
    ]


def read_records(log: Log, offset: int | None = None, up_to: int | None = None) -> list[tuple[int, bytes | None]]:
    start = log.log_start_offset if offset is None else offset
    return [(at, value) for at, value in records(read_bytes(log, start, up_to=up_to)) if at >= start]


def values(found: Iterable[tuple[int, bytes | None]]) -> list[bytes | None]:
    return [value for _, value in found]


def decided_end(log: Log) -> int:
    """What the last stable offset is once everything in the log is replicated."""
    return min(log.producers._open.values(), default=log.log_end_offset)
