"""Errors that storage raises. Servers translate them to protocol error codes in one place; storage knows no error
codes.

`RejectedAppendError` and its subclasses mean that nothing was written. `StorageError` means that the disk failed or is
full: nothing of the current append was kept, everything before it was.
"""

import errno
from collections.abc import Sequence
from typing import NamedTuple

from sskafka.records.batch import CorruptBatchError

__all__ = [
    "ClosedLogError",
    "CorruptBatchError",
    "CorruptFileError",
    "DamagedLogError",
    "InvalidProducerEpochError",
    "InvalidRecordError",
    "InvalidTimestampError",
    "InvalidTransactionStateError",
    "LogDirectoryError",
    "OffsetOutOfRangeError",
    "OutOfOrderSequenceError",
    "RecordError",
    "RecordTooLargeError",
    "RejectedAppendError",
    "StorageError",
    "TemporaryStorageError",
    "TransactionCoordinatorFencedError",
    "UnexpectedAppendOffsetError",
    "is_not_regular_file",
    "next_step",
]


class StorageError(Exception):
    """The disk is full, broken, or offline after an error."""


class TemporaryStorageError(StorageError):
    """The disk is full, or the process lacks descriptors or memory. Nothing was changed; a retry may succeed."""


class LogDirectoryError(StorageError):
    """A log directory cannot be used: it is locked by another broker, not writable, or belongs to another node."""


class ClosedLogError(StorageError):
    """The log is closed: its replica was deleted or moved, or the broker stops.

    Nothing may be written any more: a topic of the same name may have its files in the same place."""


class CorruptFileError(StorageError):
    """A small file (checkpoint, snapshot, properties, index) has invalid content."""


_IN_ITS_PLACE = frozenset({errno.EISDIR, errno.ENOTDIR, errno.ENOENT, errno.ELOOP})


def is_not_regular_file(error: OSError) -> bool:
    """Return whether there is something else at the path of a file: a directory, or a link to nothing."""
    return error.errno in _IN_ITS_PLACE and error.filename is not None


def next_step(error: OSError) -> str:
    """Return the next step of an operator, to be appended to the text of the error, if the error suggests one."""
    if not is_not_regular_file(error):
        return ""
    return f"; restore {error.filename} from a copy, or remove the directory or broken link at this path"


class DamagedLogError(StorageError):
    """Recovery of the log would drop records that were known to be on disk."""

    def __init__(self, path: str, position: int, offset: int, problem: str) -> None:
        super().__init__(f"{path} is damaged at byte {position}, offset {offset}: {problem}")
        self.offset = offset


class OffsetOutOfRangeError(Exception):
    def __init__(self, offset: int, log_start_offset: int, log_end_offset: int) -> None:
        super().__init__(f"offset {offset} is outside of {log_start_offset}..{log_end_offset}")
        self.offset = offset


class RejectedAppendError(Exception):
    """The batches were rejected as a whole; the log is unchanged."""


class RecordTooLargeError(RejectedAppendError):
    pass


class RecordError(NamedTuple):
    """A record that caused the rejection of its batch."""

    batch_index: int
    message: str


class InvalidRecordError(RejectedAppendError):
    def __init__(self, text: str, record_errors: Sequence[RecordError] = ()) -> None:
        super().__init__(text)
        self.record_errors = record_errors


class InvalidTimestampError(RejectedAppendError):
    def __init__(self, text: str, record_errors: Sequence[RecordError] = ()) -> None:
        super().__init__(text)
        self.record_errors = record_errors


class OutOfOrderSequenceError(RejectedAppendError):
    pass


class InvalidProducerEpochError(RejectedAppendError):
    pass


class InvalidTransactionStateError(RejectedAppendError):
    pass


class TransactionCoordinatorFencedError(RejectedAppendError):
    pass


class UnexpectedAppendOffsetError(RejectedAppendError):
    """A follower received batches that do not continue its log."""

    def __init__(self, first_offset: int, last_offset: int, log_end_offset: int) -> None:
        super().__init__(f"batches {first_offset}..{last_offset} do not continue a log that ends at {log_end_offset}")
        self.first_offset = first_offset
        self.last_offset = last_offset
