"""Small batches that decompress to many bytes or many records: bounded, and not on the event loop."""

import gzip
import time
from collections.abc import Callable
from struct import pack
from typing import Any

import cramjam
import pytest
from scene import MEGABYTE, Scene
from wire_connection import PRODUCE_VERSION, Connection, produce_request

from sskafka.model.errors import ErrorCode
from sskafka.records.batch import read_header
from sskafka.records.builder import NewRecord, build_batch, encode_record, frame
from sskafka.records.compression import Compression, compress
from sskafka.storage.append_checks import DECOMPRESSION_FACTOR
from sskafka.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

NOW_MS = int(time.time() * 1000)
BOMB_BYTES = 64 * MEGABYTE
MAX_TIMESTAMP = -3


def batch_with(codec: Compression, compressed: bytes, count: int) -> bytes:
    header = read_header(build_batch([NewRecord(b"k", b"v", (), NOW_MS)]))
    fields = header._replace(attributes=int(codec), record_count=count, last_offset_delta=count - 1)
    return bytes(frame(fields, compressed))


def one_huge_record(codec: Compression) -> bytes:
    payload = encode_record(0, 0, b"k", bytes(BOMB_BYTES))
    return batch_with(codec, bytes(compress(codec, payload)), 1)


def many_tiny_records(codec: Compression, count: int) -> bytes:
    """Records of changing shapes, so that none of them can be checked together."""
    payload = b"".join(encode_record(n, n % 5, b"k" * (n % 3 + 1), None) for n in range(count))
    return batch_with(codec, bytes(compress(codec, payload)), count)


def claims_more_than_it_has() -> bytes:
    """A zstd frame whose header claims 1 TB."""
    payload = encode_record(0, 0, b"k", b"v")
    block = pack("<I", len(payload) << 3 | 1)[:3] + payload
    return batch_with(Compression.ZSTD, b"\x28\xb5\x2f\xfd\xe0" + pack("<Q", 1 << 40) + block, 1)


def many_snappy_blocks() -> bytes:
    block = bytes(cramjam.snappy.compress_raw(bytes(64 * 1024)))
    framed = pack(">i", len(block)) + block
    head = bytes(compress(Compression.SNAPPY, b""))
    return batch_with(Compression.SNAPPY, head + framed * 320, 1)  # snappy does not get denser than 1 MB for 20 MB


def many_gzip_members() -> bytes:
    return batch_with(Compression.GZIP, gzip.compress(bytes(MEGABYTE), mtime=0) * 64, 1)


BOMBS: dict[str, Callable[[], bytes]] = {
    "gzip": lambda: one_huge_record(Compression.GZIP),
    "snappy": many_snappy_blocks,
    "lz4": lambda: one_huge_record(Compression.LZ4),
    "zstd": lambda: one_huge_record(Compression.ZSTD),
    "gzip of many members": many_gzip_members,
    "zstd that claims 1 TB": claims_more_than_it_has,
}
REFUSALS = {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_RECORD}


@pytest.mark.parametrize("cleanup_policy", ["delete", "compact"])
def test_bombs_are_refused(start_scene: Callable[..., Scene], cleanup_policy: str) -> None:
    scene = start_scene()
    with scene.connect() as client:
        client.create_topic("bombs", cleanup_policy=cleanup_policy, max_message_bytes=MEGABYTE)
        client.create_topic("packed", compression_type="gzip", max_message_bytes=MEGABYTE)
        for name, make in BOMBS.items():
            for topic in ("bombs", "packed"):
                assert client.produce(topic, make()).error_code in REFUSALS, name
    scene.check(rss_growth_bytes_max=4 * DECOMPRESSION_FACTOR * MEGABYTE)


def test_many_records_are_checked_and_searched_beside_the_event_loop(start_scene: Callable[..., Scene]) -> None:
    """200,000 records in some kilobytes are a batch like any other; the polite client hardly notices it."""
    scene = start_scene()
    count = 200_000
    bomb = many_tiny_records(Compression.ZSTD, count)
    assert len(bomb) < 600_000
    with scene.connect() as client:
        client.create_topic("many", cleanup_policy="compact")
        assert client.produce("many", bomb).error_code == 0
        found = list_offset(client, "many", NOW_MS + 4)
        assert (found.offset, found.timestamp) == (4, NOW_MS + 4)
        assert list_offset(client, "many", MAX_TIMESTAMP).offset == 4
        assert list_offset(client, "many", NOW_MS + 5).offset == -1
    scene.check(rss_growth_bytes_max=100 * MEGABYTE)


def test_a_small_batch_behind_a_large_one_keeps_its_place(start_scene: Callable[..., Scene]) -> None:
    """Batches of one connection are appended in the order of the requests, also while a thread looks at the first."""
    scene = start_scene()
    large = many_tiny_records(Compression.LZ4, 30_000)
    small = build_batch([NewRecord(b"k", b"v", (), NOW_MS)])
    with scene.connect() as client:
        client.create_topic("order")
        for attempt in range(3):
            for batch in (large, small, large, small):
                client.send(produce_request("order", batch), PRODUCE_VERSION)
            offsets = [produced(client).base_offset for _ in range(4)]
            base = attempt * 60_002
            assert offsets == [base, base + 30_000, base + 30_001, base + 60_001]


def produced(client: Connection) -> Any:
    _, response = client.receive()
    return response.responses[0].partition_responses[0]


def list_offset(client: Connection, topic: str, timestamp: int) -> Any:
    asked = ListOffsetsPartition(0, timestamp=timestamp)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(topic, [asked])])
    (answer,) = client.call(request, version=7).topics
    return answer.partitions[0]


@pytest.mark.long_attack
def test_a_stream_of_bombs(start_scene: Callable[..., Scene]) -> None:
    """A million records of changing shape in every batch, from several connections, for a minute."""
    scene = start_scene()
    bomb = many_tiny_records(Compression.ZSTD, 1_000_000)
    with scene.connect() as client, scene.connect() as other:
        client.create_topic("stream", cleanup_policy="compact")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for one in (client, other):
                one.send(produce_request("stream", bomb), PRODUCE_VERSION)
            for one in (client, other):
                assert produced(one).error_code in {0, ErrorCode.MESSAGE_TOO_LARGE}
            list_offset(client, "stream", NOW_MS + 4)
    scene.check(rss_growth_bytes_max=400 * MEGABYTE)
