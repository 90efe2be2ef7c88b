"""The last committed value of a key, in logs with open transactions."""

from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.decode import read_batches
from sskafka.pipelines.connector.last_committed import LastCommitted
from sskafka.pipelines.connector.offsets import OffsetRange
from sskafka.records.builder import NewRecord, build_batch
from sskafka.records.control import ControlType, EndTransactionMarker, control_key

KEY, ANOTHER = b"query", b"another"
WANTED = OffsetRange(TopicPartition("control", 0), 0, 1_000)
COMMIT, ABORT = ControlType.COMMIT, ControlType.ABORT


class Written(NamedTuple):
    producer_id: int
    key: bytes
    value: bytes


class Ended(NamedTuple):
    producer_id: int
    how: ControlType


Step = Written | Ended


def batch_of(offset: int, step: Step) -> bytes:
    if isinstance(step, Written):
        record, control = NewRecord(step.key, step.value), False
    else:
        record, control = NewRecord(control_key(step.how), EndTransactionMarker(step.how, 0).value()), True
    return build_batch(
        [record],
        base_offset=offset,
        producer_id=step.producer_id,
        producer_epoch=0,
        transactional=True,
        control=control,
    )


def found_in(steps: Sequence[Step]) -> LastCommitted:
    log = b"".join(batch_of(offset, step) for offset, step in enumerate(steps))
    found = LastCommitted(KEY)
    for batch in read_batches(log, WANTED, include_markers=True).batches:
        found.take(batch, WANTED)
    return found


def test_a_value_behind_an_open_transaction_counts() -> None:
    found = found_in([Written(7, ANOTHER, b"open"), Written(1, KEY, b"1"), Ended(1, COMMIT)])
    assert (found.value, found.is_undecided) == (b"1", False)


def test_a_value_without_a_marker_does_not_count_yet() -> None:
    found = found_in([Written(1, KEY, b"1"), Ended(1, COMMIT), Written(1, KEY, b"2"), Ended(7, COMMIT)])
    assert (found.value, found.is_undecided) == (b"1", True)


def test_an_aborted_value_does_not_count() -> None:
    found = found_in([Written(1, KEY, b"1"), Ended(1, COMMIT), Written(1, KEY, b"2"), Ended(1, ABORT)])
    assert (found.value, found.is_undecided) == (b"1", False)


def test_a_value_outside_of_transactions_counts_at_once() -> None:
    found = LastCommitted(KEY)
    for batch in read_batches(build_batch([NewRecord(KEY, b"1")]), WANTED).batches:
        found.take(batch, WANTED)
    assert (found.value, found.is_undecided) == (b"1", False)


producers = st.integers(min_value=1, max_value=3)
written = st.builds(Written, producers, st.sampled_from([KEY, ANOTHER]), st.binary(min_size=1, max_size=3))
ended = st.builds(Ended, producers, st.sampled_from([COMMIT, ABORT]))


@given(st.lists(st.one_of(written, ended), max_size=20))
def test_what_counts_is_what_readers_see_when_all_that_is_open_is_aborted(steps: list[Step]) -> None:
    open_now = {step.producer_id for step in steps if isinstance(step, Written)}
    closed = [*steps, *(Ended(producer_id, ABORT) for producer_id in open_now)]
    committed: list[tuple[int, bytes]] = []
    pending: dict[int, bytes] = {}
    for offset, step in enumerate(closed):
        if isinstance(step, Ended):
            value = pending.pop(step.producer_id, None)
            if value is not None and step.how is COMMIT:
                committed.append((offset, value))
        elif step.key == KEY:
            pending[step.producer_id] = step.value
    assert found_in(steps).value == (committed[-1][1] if committed else None)
    assert not found_in(closed).is_undecided
