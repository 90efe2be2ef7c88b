"""Messages of formats 0 and 1 as old producers and brokers wrote them."""

import struct
from collections.abc import Sequence
from zlib import crc32

from sskafka.records.batch import LOG_APPEND_TIME
from sskafka.records.compression import Compression, compress


def message(
    offset: int,
    key: bytes | None,
    value: bytes | None,
    *,
    magic: int = 1,
    timestamp: int = 1000,
    attributes: int = 0,
) -> bytes:
    time = struct.pack(">q", timestamp) if magic else b""
    body = struct.pack(">bb", magic, attributes) + time + _field(key) + _field(value)
    return struct.pack(">qiI", offset, len(body) + 4, crc32(body)) + body


def compressed(
    codec: Compression,
    last_offset: int,
    messages: Sequence[bytes],
    *,
    magic: int = 1,
    timestamp: int = 1000,
    append_time: bool = False,
) -> bytes:
    """One message around others, whose offsets must be relative in format 1."""
    data = bytes(compress(codec, b"".join(messages)))
    if codec is Compression.LZ4 and magic == 0:
        data = data[:6] + b"\x00" + data[7:]  # a checksum that also covered the frame's magic number was a wrong one
    attributes = codec | (LOG_APPEND_TIME if append_time else 0)
    return message(last_offset, None, data, magic=magic, timestamp=timestamp, attributes=attributes)


def _field(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def old_segment() -> bytes:
    """Both formats, plain and compressed, at offsets 0 to 10."""
    inside = [message(offset, b"k%d" % offset, b"v%d" % offset, magic=0) for offset in (2, 3)]
    relative = [message(number, None, b"r%d" % number, timestamp=3000 + number) for number in range(3)]
    return b"".join(
        (
            message(0, b"key", b"zero", magic=0),
            message(1, None, None, magic=0),
            compressed(Compression.GZIP, 3, inside, magic=0),
            message(4, "ключ".encode(), b"four", timestamp=2000),
            compressed(Compression.SNAPPY, 7, relative, timestamp=3002),
            compressed(Compression.LZ4, 10, relative, timestamp=9000, append_time=True),
        )
    )
