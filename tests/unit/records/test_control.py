import pytest

from sskafka.records.batch import CorruptBatchError, read_header
from sskafka.records.builder import NewRecord, build_batch
from sskafka.records.control import (
    ControlType,
    EndTransactionMarker,
    control_key,
    read_control_type,
    read_end_transaction_marker,
)
from sskafka.records.record import decode_records


def test_a_marker_is_encoded_and_decoded() -> None:
    marker = EndTransactionMarker(ControlType.COMMIT, coordinator_epoch=7)
    batch = build_batch([NewRecord(control_key(marker.type), marker.value())], control=True, transactional=True)
    header = read_header(batch)
    assert header.is_control
    (record,) = decode_records(batch, header)
    assert read_end_transaction_marker(record.key, record.value) == marker


def test_types_of_newer_brokers_are_read_as_numbers() -> None:
    assert read_control_type(b"\x00\x00\x00\x63") == 99


def test_bad_markers_are_corrupt() -> None:
    for key, value in [
        (None, b""),
        (b"\x00", b""),
        (control_key(ControlType.LEADER_CHANGE), bytes(6)),
        (control_key(ControlType.ABORT), b"\x00"),
        (control_key(ControlType.ABORT), None),
    ]:
        with pytest.raises(CorruptBatchError):
            read_end_transaction_marker(key, value)
