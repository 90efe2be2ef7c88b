"""Batches whose header, records or compressed data say something that is not true, by the name of the lie.

Batches other than `WRONG_FRAMES` have a correct CRC: the client lies, nothing was damaged on the way.
"""

import gzip
from struct import pack

import cramjam

from sskafka.model.errors import ErrorCode
from sskafka.records.batch import BatchHeader, read_header
from sskafka.records.builder import NewRecord, build_batch, frame
from sskafka.records.compression import Compression, compress
from sskafka.records.varint import encode_varint

TIMESTAMP_MS = 1_700_000_000_000
RECORDS = [NewRecord(b"k%d" % n, b"value %d" % n, (("n", b"%d" % n),), TIMESTAMP_MS + n) for n in range(3)]
GOOD = bytes(build_batch(RECORDS))
HEADER = read_header(GOOD)
PAYLOAD = GOOD[61:]

BATCH_BYTES_MAX = 1_048_588  # max.message.bytes


def with_header(**fields: int) -> bytes:
    return bytes(frame(HEADER._replace(**fields), PAYLOAD))


def with_payload(payload: bytes, codec: Compression = Compression.NONE, header: BatchHeader = HEADER) -> bytes:
    attributes = header.attributes | codec
    return bytes(frame(header._replace(attributes=attributes), compress(codec, payload)))


def with_compressed(codec: Compression, compressed: bytes, header: BatchHeader = HEADER) -> bytes:
    return bytes(frame(header._replace(attributes=header.attributes | codec), compressed))


def overlong(value: int, size: int) -> bytes:
    """A zigzag varint that is padded to `size` bytes."""
    folded = (value << 1) ^ (value >> 63)
    digits = [(folded >> 7 * n) & 0x7F | 0x80 for n in range(size)]
    digits[-1] &= 0x7F
    return bytes(digits)


def record(
    delta: int,
    *,
    attributes: bytes = b"\0",
    timestamp_delta: bytes | None = None,
    offset_delta: bytes | None = None,
    key: bytes = encode_varint(1) + b"k",
    value: bytes = encode_varint(1) + b"v",
    headers: bytes = b"\0",
    length: int | None = None,
    length_bytes: bytes | None = None,
    after: bytes = b"",
) -> bytes:
    """A record from its fields as bytes, with any length in front."""
    body = b"".join((
        attributes,
        encode_varint(delta) if timestamp_delta is None else timestamp_delta,
        encode_varint(delta) if offset_delta is None else offset_delta,
        key, value, headers, after,
    ))  # fmt: skip
    return (length_bytes or encode_varint(len(body) if length is None else length)) + body


def middle(**fields: object) -> bytes:
    """Three records, of which the second lies."""
    return record(0) + record(1, **fields) + record(2)  # type: ignore[arg-type]


def _header_lies() -> dict[str, bytes]:
    flags = HEADER.attributes
    return {
        "good": GOOD,
        "record count too high": with_header(record_count=4),
        "record count too low": with_header(record_count=2),
        "record count and last offset delta too high": with_header(record_count=4, last_offset_delta=3),
        "record count and last offset delta too low": with_header(record_count=2, last_offset_delta=1),
        "record count and last offset delta huge": with_header(record_count=2**31 - 1, last_offset_delta=2**31 - 2),
        "record count 0": with_header(record_count=0),
        "record count -1": with_header(record_count=-1),
        "record count 0, last offset delta -1": with_header(record_count=0, last_offset_delta=-1),
        "last offset delta too high": with_header(last_offset_delta=5),
        "last offset delta too low": with_header(last_offset_delta=0),
        "last offset delta negative": with_header(last_offset_delta=-1),
        "last offset delta huge": with_header(last_offset_delta=2**31 - 1),
        "empty batch": bytes(build_batch([])),
        "no records, count 3": with_payload(b""),
        "base offset 77": with_header(base_offset=77),
        "base offset -1": with_header(base_offset=-1),
        "leader epoch 5": with_header(leader_epoch=5),
        "base timestamp -1": with_header(base_timestamp=-1),
        "base timestamp -2": with_header(base_timestamp=-2),
        "base timestamp minimal": with_header(base_timestamp=-(2**63)),
        "base timestamp maximal": with_header(base_timestamp=2**63 - 1),
        "max timestamp too high": with_header(max_timestamp=TIMESTAMP_MS + 500),
        "max timestamp too low": with_header(max_timestamp=TIMESTAMP_MS),
        "max timestamp -1": with_header(max_timestamp=-1),
        "max timestamp in the far future": with_header(max_timestamp=2**62),
        "log append time bit": with_header(attributes=flags | 0x08),
        "transactional bit": with_header(attributes=flags | 0x10),
        "control bit": with_header(attributes=flags | 0x20),
        "delete horizon bit": with_header(attributes=flags | 0x40),
        "reserved bit 7": with_header(attributes=flags | 0x80),
        "reserved bit 8": with_header(attributes=flags | 0x100),
        "reserved bit 14": with_header(attributes=flags | 0x4000),
        "reserved bit 15": with_header(attributes=flags - 0x8000),
        "codec 5": with_header(attributes=flags | 5),
        "codec 6": with_header(attributes=flags | 6),
        "codec 7": with_header(attributes=flags | 7),
        "producer id without sequence": with_header(producer_id=5, producer_epoch=0),
        "producer id without epoch": with_header(producer_id=5, base_sequence=0),
        "producer id -2": with_header(producer_id=-2, producer_epoch=0, base_sequence=0),
        "producer id with sequence -2": with_header(producer_id=5, producer_epoch=0, base_sequence=-2),
        "sequence without producer id": with_header(base_sequence=0),
        "producer epoch without producer id": with_header(producer_epoch=3),
    }


def _record_lies() -> dict[str, bytes]:
    """Payloads of three records."""
    null = encode_varint(-1)
    return {
        "good records": middle(),
        "trailing byte": PAYLOAD + b"\0",
        "trailing bytes": PAYLOAD + b"\x01\x02\x03\x04\x05",
        "trailing record": PAYLOAD + record(3),
        "a byte too few": PAYLOAD[:-1],
        "one record cut": PAYLOAD[: len(PAYLOAD) // 2],
        "record length too long by 1": middle(length=9),
        "record length too short by 1": middle(length=7),
        "record length beyond the batch": middle(length=1000),
        "record length of the last too long": record(0) + record(1) + record(2, length=50),
        "record length huge": middle(length=2**31 - 1),
        "record length negative": middle(length=-1),
        "record length 0": middle(length=0),
        "record length 5 bytes long": middle(length_bytes=overlong(8, 5)),
        "record length 6 bytes long": middle(length_bytes=overlong(8, 6)),
        "record length above 32 bits": middle(length_bytes=b"\x90\x80\x80\x80\x10"),
        "record too long, filled": middle(after=b"\0"),
        "record too long, filled with 10 bytes": middle(after=bytes(10)),
        "record attributes set": middle(attributes=b"\xff"),
        "timestamp delta 10 bytes long": middle(timestamp_delta=overlong(1, 10)),
        "timestamp delta 11 bytes long": middle(timestamp_delta=overlong(1, 11)),
        "timestamp delta negative": middle(timestamp_delta=encode_varint(-5)),
        "timestamp delta huge": middle(timestamp_delta=encode_varint(2**62)),
        "timestamp delta below zero time": middle(timestamp_delta=encode_varint(-TIMESTAMP_MS - 100)),
        "offset delta 5 bytes long": middle(offset_delta=overlong(1, 5)),
        "offset delta 6 bytes long": middle(offset_delta=overlong(1, 6)),
        "offset delta repeated": middle(offset_delta=encode_varint(0)),
        "offset delta skipped": middle(offset_delta=encode_varint(7)),
        "offset delta negative": middle(offset_delta=encode_varint(-1)),
        "offset delta huge": middle(offset_delta=encode_varint(2**31 - 1)),
        "offset deltas descending": record(2) + record(1) + record(0),
        "offset deltas from 1": record(1) + record(2) + record(3),
        "key null": middle(key=null),
        "key length -2": middle(key=encode_varint(-2)),
        "key length beyond the record": middle(key=encode_varint(9) + b"k"),
        "key length beyond the batch": middle(key=encode_varint(100) + b"k"),
        "key length huge": middle(key=encode_varint(2**31 - 1) + b"k"),
        "key length 5 bytes long": middle(key=overlong(1, 5) + b"k"),
        "key length 6 bytes long": middle(key=overlong(1, 6) + b"k"),
        "key length too short": middle(key=encode_varint(0) + b"k"),
        "value null": middle(value=null),
        "value length -2": middle(value=encode_varint(-2)),
        "value length beyond the record": middle(value=encode_varint(4) + b"v"),
        "value length beyond the batch": middle(value=encode_varint(100) + b"v"),
        "value length huge": middle(value=encode_varint(2**31 - 1) + b"v"),
        "value length too short": middle(value=encode_varint(0) + b"v"),
        "header count -1": middle(headers=encode_varint(-1)),
        "header count -2147483648": middle(headers=encode_varint(-(2**31))),
        "header count too high": middle(headers=encode_varint(3)),
        "header count huge": middle(headers=encode_varint(2**31 - 1)),
        "header count too low": middle(headers=encode_varint(0) + encode_varint(1) + b"h" + encode_varint(1) + b"v"),
        "header count missing": middle(headers=b""),
        "header key null": middle(headers=encode_varint(1) + null + encode_varint(1) + b"v"),
        "header key length beyond the record": middle(headers=encode_varint(1) + encode_varint(9) + b"h"),
        "header key length beyond the batch": middle(headers=encode_varint(1) + encode_varint(99) + b"h"),
        "header key not UTF-8": middle(headers=encode_varint(1) + encode_varint(2) + b"\xff\xfe" + null),
        "header value null": middle(headers=encode_varint(1) + encode_varint(1) + b"h" + null),
        "header value length -2": middle(headers=encode_varint(1) + encode_varint(1) + b"h" + encode_varint(-2)),
        "header value length beyond the record": middle(
            headers=encode_varint(1) + encode_varint(1) + b"h" + encode_varint(5) + b"v"
        ),
        "header value length beyond the batch": middle(
            headers=encode_varint(1) + encode_varint(1) + b"h" + encode_varint(99) + b"v"
        ),
        "last record's key beyond the batch": record(0) + record(1) + record(2, key=encode_varint(100) + b"k"),
        "last record without header count": record(0) + record(1) + record(2, headers=b""),
        "zeros": bytes(len(PAYLOAD)),
        "ones": b"\xff" * len(PAYLOAD),
        "text": b"this is not a record but a sentence that goes on for a while",
    }


def wrong_frames() -> dict[str, bytes]:
    """Batches that are wrong before anyone looks at their records."""

    def patched(at: int, value: bytes) -> bytes:
        return GOOD[:at] + value + GOOD[at + len(value) :]

    return {
        "no bytes": b"",
        "a header alone": GOOD[:61],
        "half a header": GOOD[:30],
        "cut": GOOD[:-3],
        "two batches": GOOD + GOOD,
        "bytes behind the batch": GOOD + b"\0\0\0",
        "magic 0": patched(16, b"\0"),
        "magic 1": patched(16, b"\1"),
        "magic 3": patched(16, b"\3"),
        "magic -1": patched(16, b"\xff"),
        "CRC wrong": patched(17, b"\0\0\0\0"),
        "batch length too small": patched(8, pack(">i", 40)),
        "batch length shorter than its records": patched(8, pack(">i", len(GOOD) - 12 - 5)),
        "batch length too big": patched(8, pack(">i", 4000)),
        "batch length 0": patched(8, pack(">i", 0)),
        "batch length negative": patched(8, pack(">i", -1)),
        "batch length huge": patched(8, pack(">i", 2**31 - 1)),
    }


def _compressed_lies() -> dict[str, bytes]:
    """What only compressed data can lie about."""
    zstd = bytes(cramjam.zstd.compress(PAYLOAD))
    lz4 = bytes(compress(Compression.LZ4, PAYLOAD))
    xerial = bytes(compress(Compression.SNAPPY, PAYLOAD))
    raw_snappy = bytes(cramjam.snappy.compress_raw(PAYLOAD))
    zipped = gzip.compress(PAYLOAD, mtime=0)
    half = len(PAYLOAD) // 2
    blocks = b"".join(
        pack(">i", len(block)) + block
        for at in range(len(PAYLOAD))
        for block in [bytes(cramjam.snappy.compress_raw(PAYLOAD[at : at + 1]))]
    )
    gzip_code, snappy_code, lz4_code, zstd_code = (
        Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD,
    )  # fmt: skip
    return {
        "gzip: not gzip": with_compressed(gzip_code, PAYLOAD),
        "gzip: cut": with_compressed(gzip_code, zipped[:-9]),
        "gzip: trailer cut": with_compressed(gzip_code, zipped[:-4]),
        "gzip: CRC wrong": with_compressed(gzip_code, zipped[:-8] + b"\0\0\0\0" + zipped[-4:]),
        "gzip: size wrong": with_compressed(gzip_code, zipped[:-4] + b"\0\0\0\1"),
        "gzip: two members": with_compressed(
            gzip_code, gzip.compress(PAYLOAD[:half], mtime=0) + gzip.compress(PAYLOAD[half:], mtime=0)
        ),
        "gzip: member behind the records": with_compressed(gzip_code, zipped + gzip.compress(b"more", mtime=0)),
        "gzip: bytes behind the stream": with_compressed(gzip_code, zipped + b"garbage"),
        "gzip: empty": with_compressed(gzip_code, b""),
        "snappy: not snappy": with_compressed(snappy_code, b"\xff\xff\xff\xff\xff" + PAYLOAD),
        "snappy: raw block": with_compressed(snappy_code, raw_snappy),
        "snappy: raw block claims more": with_compressed(snappy_code, b"\xff\xff\xff\x7f" + raw_snappy[1:]),
        "snappy: a block a byte": with_compressed(snappy_code, xerial[:16] + blocks),
        "snappy: block size beyond the data": with_compressed(
            snappy_code, xerial[:16] + pack(">i", 9999) + xerial[20:]
        ),
        "snappy: block size negative": with_compressed(snappy_code, xerial[:16] + pack(">i", -5) + xerial[20:]),
        "snappy: bytes behind the blocks": with_compressed(snappy_code, xerial + b"\0\0"),
        "snappy: empty": with_compressed(snappy_code, b""),
        "lz4: not lz4": with_compressed(lz4_code, PAYLOAD),
        "lz4: cut": with_compressed(lz4_code, lz4[:-6]),
        "lz4: no end mark": with_compressed(lz4_code, lz4[:-4]),
        "lz4: header checksum wrong": with_compressed(lz4_code, lz4[:6] + b"\0" + lz4[7:]),
        "lz4: bytes behind the frame": with_compressed(lz4_code, lz4 + b"garbage"),
        "lz4: two frames": with_compressed(lz4_code, lz4 + lz4),
        "lz4: block size beyond the data": with_compressed(lz4_code, lz4[:7] + pack("<I", 5000) + lz4[11:]),
        "lz4: empty": with_compressed(lz4_code, b""),
        "zstd: not zstd": with_compressed(zstd_code, PAYLOAD),
        "zstd: cut": with_compressed(zstd_code, zstd[:-3]),
        "zstd: bytes behind the frame": with_compressed(zstd_code, zstd + b"garbage"),
        "zstd: two frames": with_compressed(
            zstd_code,
            bytes(cramjam.zstd.compress(PAYLOAD[:half])) + bytes(cramjam.zstd.compress(PAYLOAD[half:])),
        ),
        "zstd: frame behind the records": with_compressed(zstd_code, zstd + bytes(cramjam.zstd.compress(b"more"))),
        "zstd: content size too small": with_compressed(zstd_code, _zstd_claiming(1)),
        "zstd: content size too big": with_compressed(zstd_code, _zstd_claiming(2**40)),
        "zstd: empty": with_compressed(zstd_code, b""),
    }


def _zstd_claiming(size: int) -> bytes:
    """A frame with one raw block, whose header claims another content size (8 bytes)."""
    block = pack("<I", len(PAYLOAD) << 3 | 1)[:3] + PAYLOAD  # last block, raw
    return b"\x28\xb5\x2f\xfd" + b"\xe0" + pack("<Q", size) + block


HEADER_LIES = _header_lies()
RECORD_LIES = _record_lies()
COMPRESSED_LIES = _compressed_lies()
WRONG_FRAMES = wrong_frames()


def all_lies() -> dict[str, bytes]:
    """Every lie, those of records in plain and compressed batches."""
    lies = {**HEADER_LIES, **WRONG_FRAMES, **COMPRESSED_LIES}
    for name, payload in RECORD_LIES.items():
        for codec in Compression:
            lies[f"{name} ({codec.name.lower()})"] = with_payload(payload, codec)
    for codec in (Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD):
        for name in (
            "record count and last offset delta too high",
            "record count and last offset delta too low",
            "max timestamp too high",
            "max timestamp too low",
            "log append time bit",
            "base timestamp minimal",
        ):
            header = read_header(HEADER_LIES[name])
            lies[f"{name} ({codec.name.lower()})"] = with_payload(PAYLOAD, codec, header)
    return lies


HARMLESS = {
    "good", "leader epoch 5", "base timestamp -1", "base timestamp -2", "max timestamp too high",
    "max timestamp too low", "max timestamp -1", "max timestamp in the far future", "log append time bit",
    "delete horizon bit", "reserved bit 7", "reserved bit 8", "reserved bit 14", "reserved bit 15", "producer id -2",
    "sequence without producer id", "producer epoch without producer id", "snappy: raw block",
    "snappy: a block a byte", "zstd: two frames", "good records", "record length 5 bytes long",
    "record attributes set", "timestamp delta 10 bytes long", "timestamp delta negative",
    "timestamp delta below zero time", "offset delta 5 bytes long", "key null", "key length 5 bytes long",
    "value null", "header key not UTF-8", "header value null",
}  # fmt: skip
"""Accepted, as by Apache Kafka: every consumer reads these batches. Wrong timestamps in the header are corrected."""

OTHER_REFUSALS = {
    "base timestamp minimal": ErrorCode.INVALID_TIMESTAMP,
    "base timestamp maximal": ErrorCode.INVALID_TIMESTAMP,
    "timestamp delta huge": ErrorCode.INVALID_TIMESTAMP,
    "transactional bit": ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    "producer id without epoch": ErrorCode.INVALID_PRODUCER_EPOCH,
    "magic 3": ErrorCode.CORRUPT_MESSAGE,
    "magic -1": ErrorCode.CORRUPT_MESSAGE,
    "CRC wrong": ErrorCode.CORRUPT_MESSAGE,
    "batch length too small": ErrorCode.CORRUPT_MESSAGE,
    "batch length 0": ErrorCode.CORRUPT_MESSAGE,
    "batch length negative": ErrorCode.CORRUPT_MESSAGE,
    "snappy: raw block claims more": ErrorCode.MESSAGE_TOO_LARGE,
    "zstd: content size too big": ErrorCode.MESSAGE_TOO_LARGE,
}
"""All others are refused with INVALID_RECORD, which clients do not retry."""


def expected_code(name: str) -> ErrorCode:
    """Return the error code with which a broker answers the lie."""
    kind = name.rsplit(" (", 1)[0]
    if kind in HARMLESS:
        return ErrorCode.NONE
    return OTHER_REFUSALS.get(kind, ErrorCode.INVALID_RECORD)
