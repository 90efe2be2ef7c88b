"""Encoding of transactions in `__transaction_state`."""

import pytest

from sskafka.model.ids import ProducerIdAndEpoch, TopicPartition
from sskafka.transactions.init_producer_id import InitProducerId, decide
from sskafka.transactions.log_records import decode_key, decode_value, encode_key, encode_value, value_version
from sskafka.transactions.metadata import TransactionMetadata, TransactionState
from sskafka.wire.errors import MalformedMessageError

PARTITIONS = frozenset({TopicPartition("b", 0), TopicPartition("a", 2), TopicPartition("a", 0)})
KNOWN = TransactionMetadata(
    "pay", 7, 3, 60_000, TransactionState.PREPARE_COMMIT, PARTITIONS, 100, 200, 2, previous_producer_id=6
)


def test_keys_and_values_come_back() -> None:
    assert decode_key(encode_key("pay")) == "pay"
    assert decode_value("pay", encode_value(KNOWN, 1)) == KNOWN


def test_the_old_form_lacks_what_the_second_version_needs() -> None:
    stored = decode_value("pay", encode_value(KNOWN, 0))
    assert (stored.client_version, stored.previous_producer_id) == (0, -1)
    assert stored.partitions == PARTITIONS
    assert [value_version(level) for level in (0, 1, 2)] == [0, 1, 1]


def test_the_bytes_are_kafkas() -> None:
    """Written down from the layout: version, producer id, epoch, timeout, state, partitions by topic, two times."""
    assert encode_key("pay") == b"\x00\x00" + b"\x00\x03pay"
    value = encode_value(KNOWN, 0)
    assert value == (
        b"\x00\x00"
        + (7).to_bytes(8, "big")
        + (3).to_bytes(2, "big")
        + (60_000).to_bytes(4, "big")
        + b"\x02"
        + (2).to_bytes(4, "big")
        + b"\x00\x01a" + (2).to_bytes(4, "big") + (0).to_bytes(4, "big") + (2).to_bytes(4, "big")
        + b"\x00\x01b" + (1).to_bytes(4, "big") + (0).to_bytes(4, "big")
        + (200).to_bytes(8, "big")
        + (100).to_bytes(8, "big")
    )  # fmt: skip


def test_an_empty_transaction_has_no_partitions_at_all() -> None:
    empty = TransactionMetadata("pay", 7, 3, 60_000)
    assert b"\xff\xff\xff\xff" in encode_value(empty, 0)
    assert decode_value("pay", encode_value(empty, 1)) == empty


def test_records_of_other_kinds_are_passed_over() -> None:
    assert decode_key(b"\x00\x09whatever") is None
    assert decode_key(None) is None


def test_a_value_from_the_future_is_refused() -> None:
    with pytest.raises(MalformedMessageError):
        decode_value("pay", b"\x00\x09")


def test_the_next_coordinator_knows_who_asked_for_a_newer_epoch() -> None:
    """A producer whose answer was lost together with its coordinator asks the next one, and is not fenced."""
    recovered = TransactionMetadata("pay", 7, 4, 60_000, last_producer_epoch=3)
    stored = decode_value("pay", encode_value(recovered, 1))
    assert stored == recovered
    again = InitProducerId("pay", 60_000, ProducerIdAndEpoch(7, 3))
    assert decide(stored, again, None, 0).identity == (7, 4)
