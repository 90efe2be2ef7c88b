import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from sskafka.records.batch import HEADER_BYTES, CorruptBatchError, crc_matches, read_header, set_append_time
from sskafka.records.builder import BatchBuilder, NewRecord, build_batch, encoded_size_max, frame, recompress
from sskafka.records.compression import Compression, DecompressedTooLargeError
from sskafka.records.record import Record, decode_records, payload

RECORDS = [
    NewRecord(b"key", b"value", (("trace", b"1"), ("empty", b""), ("none", None)), 1_700_000_000_000),
    NewRecord(None, b"x" * 5000, (), 1_700_000_000_900),
    NewRecord(b"", b"", (), 1_699_999_999_000),
    NewRecord(b"tombstone", None, (), 1_700_000_000_001),
]


def decoded(batch: bytes | bytearray, position: int = 0) -> list[Record]:
    return list(decode_records(batch, read_header(batch, position), position))


@pytest.mark.parametrize("codec", Compression)
def test_built_batches_are_decoded(codec: Compression) -> None:
    batch = build_batch(RECORDS, base_offset=40, compression=codec)
    assert decoded(batch) == [
        Record(40 + place, record.timestamp, record.key, record.value, record.headers)
        for place, record in enumerate(RECORDS)
    ]


def test_the_header_describes_the_records() -> None:
    batch = build_batch(RECORDS, base_offset=7, producer_id=9, producer_epoch=2, base_sequence=5, leader_epoch=3)
    header = read_header(batch)
    assert crc_matches(batch, header)
    assert header.size_bytes == len(batch)
    assert (header.base_offset, header.last_offset, header.record_count) == (7, 10, 4)
    assert (header.base_timestamp, header.max_timestamp) == (1_700_000_000_000, 1_700_000_000_900)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.leader_epoch) == (9, 2, 5, 3)
    assert not header.is_transactional
    assert not header.is_control


@pytest.mark.parametrize("codec", Compression)
def test_aiokafka_reads_our_batches(codec: Compression) -> None:
    theirs = list(DefaultRecordBatch(bytes(build_batch(RECORDS, base_offset=5, compression=codec))))
    assert [(r.offset, r.timestamp, r.key, r.value) for r in theirs] == [
        (5 + place, record.timestamp, record.key, record.value) for place, record in enumerate(RECORDS)
    ]
    assert theirs[0].headers == list(RECORDS[0].headers)


def test_we_read_aiokafkas_batches() -> None:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=1,
        is_transactional=True,
        producer_id=4,
        producer_epoch=0,
        base_sequence=0,
        batch_size=99999,
    )
    for place, record in enumerate(RECORDS):
        builder.append(place, record.timestamp, record.key, record.value, list(record.headers))
    batch = bytes(builder.build())
    assert read_header(batch).is_transactional
    assert [r._replace(offset=0) for r in decoded(batch)] == [
        Record(0, record.timestamp, record.key, record.value, record.headers) for record in RECORDS
    ]


def test_log_append_time_is_the_time_of_every_record() -> None:
    batch = build_batch(RECORDS)
    set_append_time(batch, 0, read_header(batch), 42)
    assert {record.timestamp for record in decoded(batch)} == {42}


def test_a_batch_is_decoded_at_its_position() -> None:
    first, second = build_batch(RECORDS[:1]), build_batch(RECORDS[1:], base_offset=1)
    assert [r.offset for r in decoded(first + second, len(first))] == [1, 2, 3]


def test_a_header_count_of_minus_one_means_none() -> None:
    batch = build_batch([NewRecord(b"k", b"v")])
    batch[-1] = 0x01  # zigzag of -1
    assert decoded(batch) == [Record(0, -1, b"k", b"v", ())]


def test_header_keys_that_are_not_utf8_are_preserved() -> None:
    foreign = b"\xff\xfe".decode(errors="surrogateescape")
    batch = build_batch([NewRecord(b"k", b"v", ((foreign, b"1"),))])
    assert b"\xff\xfe" in batch
    assert decoded(batch)[0].headers == ((foreign, b"1"),)


@pytest.mark.parametrize(
    ("records", "count", "words"),
    [
        (b"", 1, "ends within the varint"),
        (b"\x80\x80\x80\x80\x80\x80", 1, "is longer than 5 bytes"),
        (b"\x01", 1, "the record has -1 bytes"),
        (b"\x7e\x00\x00\x00", 1, "the record has 63 bytes"),
        (b"\x0c\x00\x00\x00\x20\x61\x01", 1, "a field has 16 bytes"),
        (b"\x0c\x00\x00\x00\x01\x01\x02", 1, "ends within the varint"),
        (b"\x10\x00\x00\x00\x01\x01\x02\x01\x01", 1, "header has no key"),
        (b"\x0e\x00\x00\x00\x01\x01\x00\x00", 1, "its length says"),
        (b"\x0c\x00\x00\x00\x01\x01\x00\xff", 1, "1 bytes follow the last of 1 records"),
        (b"", -1, "record count -1"),
    ],
)
def test_invalid_records_are_corrupt(records: bytes, count: int, words: str) -> None:
    header = read_header(build_batch([]))._replace(record_count=count)
    with pytest.raises(CorruptBatchError, match=words):
        decoded(frame(header, records))


def test_a_truncated_batch_is_corrupt() -> None:
    batch = build_batch(RECORDS)
    with pytest.raises(CorruptBatchError, match="is 3 bytes too short"):
        list(decode_records(batch[:-3], read_header(batch)))


def test_an_unknown_codec_is_corrupt() -> None:
    header = read_header(build_batch(RECORDS))
    with pytest.raises(CorruptBatchError, match="compression type 6"):
        decoded(frame(header._replace(attributes=6), b"abc"))


def test_a_decompression_bomb_is_rejected() -> None:
    batch = build_batch([NewRecord(None, bytes(3_000_000))], compression=Compression.ZSTD)
    assert len(batch) < 2000
    with pytest.raises(DecompressedTooLargeError, match="more than the 1000000 bytes"):
        list(decode_records(batch, read_header(batch), max_bytes=1_000_000))


@pytest.mark.parametrize("codec", Compression)
def test_recompress_changes_nothing_but_the_codec(codec: Compression) -> None:
    batch = build_batch(RECORDS, base_offset=3, compression=Compression.GZIP, producer_id=8, transactional=True)
    header = read_header(batch)
    again = recompress(header, payload(b"in front" + batch, header, position=8), codec)
    new_header = read_header(again)
    assert new_header.compression == codec
    assert crc_matches(again, new_header)
    assert decoded(again) == decoded(batch)
    kept = header._replace(attributes=0, length=0, crc=0)
    assert new_header._replace(attributes=0, length=0, crc=0) == kept
    assert new_header.is_transactional


def test_a_builder_knows_its_size_and_can_build_repeatedly() -> None:
    builder = BatchBuilder()
    for record in RECORDS:
        room = encoded_size_max(record.key, record.value, record.headers)
        before = builder.size_bytes
        builder.append(record.key, record.value, record.headers, record.timestamp)
        assert builder.size_bytes - before <= room
    assert len(builder) == 4
    assert len(builder.build()) == builder.size_bytes
    assert read_header(builder.build(base_sequence=1)).base_sequence == 1
    assert read_header(builder.build(base_sequence=2)).base_sequence == 2


def test_an_empty_batch_has_only_a_header() -> None:
    batch = build_batch([], base_offset=9)
    assert len(batch) == HEADER_BYTES
    assert read_header(batch).last_offset == 9
    assert decoded(batch) == []
