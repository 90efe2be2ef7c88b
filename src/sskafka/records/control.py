"""Control records: written by brokers between data records, and never returned to consumers.

key     int16 version, int16 type
value   depends on the type; for an end-of-transaction marker: int16 version, int32 coordinator epoch
"""

from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from sskafka.records.batch import CorruptBatchError

_KEY = Struct(">hh")
_END_TRANSACTION = Struct(">hi")


class ControlType(IntEnum):
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndTransactionMarker(NamedTuple):
    """The last record of a transaction in a partition: commit or abort, and the epoch of its coordinator."""

    type: ControlType
    coordinator_epoch: int

    def value(self) -> bytes:
        return _END_TRANSACTION.pack(0, self.coordinator_epoch)


def control_key(control_type: ControlType, version: int = 0) -> bytes:
    return _KEY.pack(version, control_type)


def read_control_type(key: bytes | None) -> int:
    """Return the type in the key of a control record, as a plain number because newer brokers may add types."""
    if key is None or len(key) < _KEY.size:
        raise CorruptBatchError(f"the key {key!r} of a control record is too short")
    return int(_KEY.unpack_from(key)[1])


def read_end_transaction_marker(key: bytes | None, value: bytes | None) -> EndTransactionMarker:
    control_type = read_control_type(key)
    if control_type not in {ControlType.ABORT, ControlType.COMMIT}:
        raise CorruptBatchError(f"control record type {control_type} is not an end-of-transaction marker")
    if value is None or len(value) < _END_TRANSACTION.size:
        raise CorruptBatchError(f"the value {value!r} of an end-of-transaction marker is too short")
    return EndTransactionMarker(ControlType(control_type), _END_TRANSACTION.unpack_from(value)[1])
