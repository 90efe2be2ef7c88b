"""The parts of compaction: the key map, the throttle and the record spans."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sskafka.records.batch import CorruptBatchError, read_header
from sskafka.records.builder import NewRecord, build_batch
from sskafka.records.record import decode_records, payload
from sskafka.storage.compaction.batch_cleaning import KeyKnowledge
from sskafka.storage.compaction.latest_offsets import NOT_FOUND, SLOT_BYTES, LatestOffsets, prime_up_to
from sskafka.storage.compaction.process import IoThrottle
from sskafka.storage.compaction.record_spans import record_spans, with_timestamp_delta


@given(st.lists(st.tuples(st.binary(max_size=3), st.just(0)), max_size=200))
def test_the_key_map_is_a_dict(keys: list[tuple[bytes, int]]) -> None:
    latest, model = LatestOffsets(1 << 16, 0.9, len(keys)), {}
    for offset, (key, _) in enumerate(keys):
        latest.put(key, offset)
        model[key] = offset
    assert latest.count == len(model)
    assert {key: latest.get(key) for key in model} == model
    assert latest.get(b"a key that is not there") == NOT_FOUND
    bits = bytearray(len(keys) // 8 + 1)
    latest.mark(bits, 0, len(keys))
    assert {n for n in range(len(keys)) if bits[n >> 3] >> (n & 7) & 1} == set(model.values())


def test_the_key_map_stays_within_its_memory_and_its_load() -> None:
    latest = LatestOffsets(1000 * SLOT_BYTES, 0.9, 10**9)
    offset = 0
    while not latest.is_full:
        latest.put(b"%d" % offset, offset)
        offset += 1
    assert 890 <= offset <= 900
    assert latest.utilization <= 0.9
    assert all(latest.get(b"%d" % n) == n for n in range(offset))


def test_a_small_log_gets_a_small_map() -> None:
    assert LatestOffsets(1 << 30, 0.9, 10).count_max < 50


@given(st.sets(st.integers(100, 180)), st.integers(90, 190), st.integers(0, 40))
def test_batches_without_a_last_record_are_recognised(offsets: set[int], first: int, length: int) -> None:
    latest = LatestOffsets(1 << 16, 0.9, len(offsets))
    for offset in sorted(offsets):
        latest.put(b"%d" % offset, offset)
    keys = KeyKnowledge(latest, 100, 181)
    is_known = first >= 100 and first + length < 181
    has_last = any(offset in offsets for offset in range(first, first + length + 1))
    assert keys.may_have_last(first, first + length) is (has_last or not is_known)


def test_primes() -> None:
    assert [prime_up_to(number) for number in (2, 4, 17, 100, 5_592_405)] == [2, 3, 17, 97, 5_592_373]


FIELDS = st.one_of(st.none(), st.binary(max_size=200))
RECORDS = st.lists(
    st.builds(
        NewRecord,
        FIELDS,
        FIELDS,
        st.sampled_from([(), (("h", b"v"), ("none", None))]),
        st.integers(0, 2**50),
    ),
    min_size=1,
    max_size=20,
)


@given(RECORDS, st.integers(-(2**40), 2**40))
def test_spans_are_the_records(records: list[NewRecord], moved: int) -> None:
    batch = build_batch(records)
    header = read_header(batch)
    data = payload(batch, header)
    spans = list(record_spans(data, header.record_count))
    for span, record in zip(spans, decode_records(batch, header), strict=True):
        assert (span.key, span.has_value) == (record.key, record.value is not None)
        assert (span.offset_delta, header.base_timestamp + span.timestamp_delta) == (record.offset, record.timestamp)
    assert b"".join(data[span.start : span.end] for span in spans) == data
    shifted = b"".join(with_timestamp_delta(data, span, span.timestamp_delta + moved) for span in spans)
    for span, before in zip(record_spans(shifted, header.record_count), spans, strict=True):
        assert (span.key, span.timestamp_delta) == (before.key, before.timestamp_delta + moved)


@given(RECORDS, st.data())
def test_damaged_records_are_refused_or_read_but_never_beyond_their_batch(
    records: list[NewRecord], data: st.DataObject
) -> None:
    batch = build_batch(records)
    header = read_header(batch)
    damaged = bytearray(payload(batch, header))
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= data.draw(st.integers(1, 255))
    cut = bytes(damaged[: data.draw(st.integers(0, len(damaged)))])
    try:
        spans = list(record_spans(cut, header.record_count))
    except CorruptBatchError:
        return
    assert spans[-1].end == len(cut)


def test_the_throttle_keeps_to_its_rate() -> None:
    now_s, slept = 0.0, []

    def sleep(seconds: float) -> None:
        nonlocal now_s
        slept.append(seconds)
        now_s += seconds

    throttle = IoThrottle(1000, lambda: now_s, sleep)
    for _ in range(50):
        throttle.used(100)
    assert now_s == pytest.approx(5.0)
    assert all(seconds <= 0.2 for seconds in slept)


def test_without_a_limit_nobody_sleeps() -> None:
    throttle = IoThrottle(1.7e308, lambda: 0.0, lambda seconds: pytest.fail("slept"))
    for _ in range(10):
        throttle.used(1 << 40)
