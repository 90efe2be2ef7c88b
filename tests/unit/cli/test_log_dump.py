import json
from pathlib import Path
from struct import pack

import pytest
from legacy_messages import old_segment
from typer.testing import CliRunner

from sskafka.cli.commands import app as sskafka
from sskafka.metadata.record_codec import encode_record
from sskafka.metadata.records import FeatureLevelRecord, TopicRecord
from sskafka.model.ids import parse_uuid
from sskafka.records.builder import NewRecord, build_batch
from sskafka.records.compression import Compression
from sskafka.records.control import ControlType, EndTransactionMarker, control_key
from sskafka.storage.producers.entry import ProducedBatch, ProducerEntry
from sskafka.storage.producers.snapshot import encode_snapshot
from sskafka.wire.codec import encode
from sskafka.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from sskafka.wire.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from sskafka.wire.messages.transaction_records import TransactionLogKey, TransactionLogValue

BASE = "00000000000000000010"
MARKER = "endTxnMarker: ABORT coordinatorEpoch: 3"
PRODUCER = (
    "producerId: 7 producerEpoch: 1 coordinatorEpoch: -1 currentTxnFirstOffset: OptionalLong[10] "
    "lastTimestamp: 1005 firstSequence: 20 lastSequence: 22 lastOffset: 12 offsetDelta: 2 timestamp: 1005"
)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A segment of three batches (106 bytes, compressed, 78 bytes) with its indexes."""
    data = [
        NewRecord(b"k1", b"one", (("h1", b"x"), ("h2", None)), 1000),
        NewRecord(None, None, (), 1005),
        NewRecord("ключ".encode(), b"v\xff", (), 1002),
    ]
    marker = EndTransactionMarker(ControlType.ABORT, 3)
    first = build_batch(data, base_offset=10, leader_epoch=4, producer_id=7, producer_epoch=1, base_sequence=20)
    second = build_batch([NewRecord(b"k", b"tx", (), 2000)], base_offset=13, compression=Compression.GZIP)
    third = build_batch(
        [NewRecord(control_key(marker.type), marker.value(), (), 3000)],
        base_offset=14,
        control=True,
        transactional=True,
        producer_id=7,
        producer_epoch=1,
    )
    (tmp_path / f"{BASE}.log").write_bytes(first + second + third)
    (tmp_path / f"{BASE}.index").write_bytes(pack(">ii", 3, len(first)) + pack(">ii", 4, len(first + second)))
    (tmp_path / f"{BASE}.timeindex").write_bytes(pack(">qi", 2000, 3) + pack(">qi", 3000, 4) + bytes(24))
    (tmp_path / f"{BASE}.txnindex").write_bytes(pack(">hqqqq", 0, 7, 10, 14, 15))
    return tmp_path


def dump(*arguments: object, exit_code: int = 0) -> list[str]:
    result = CliRunner().invoke(sskafka, ["log", "dump", *map(str, arguments)])
    assert result.exit_code == exit_code, result.output
    return result.stdout.splitlines()


def test_batches(directory: Path) -> None:
    path = directory / f"{BASE}.log"
    lines = dump(path)
    assert lines[:2] == [f"Dumping {path}", "Log starting offset: 10"]
    assert lines[2].startswith(
        "baseOffset: 10 lastOffset: 12 count: 3 baseSequence: 20 lastSequence: 22 producerId: 7 producerEpoch: 1 "
        "partitionLeaderEpoch: 4 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty "
        "position: 0 CreateTime: 1005 size: 106 magic: 2 compresscodec: none crc: "
    )
    assert lines[2].endswith(" isvalid: true")
    assert "compresscodec: gzip" in lines[3]
    assert "isTransactional: true isControl: true" in lines[4]
    assert len(lines) == 5


def test_records(directory: Path) -> None:
    path = directory / f"{BASE}.log"
    assert [line for line in dump(path, "--deep-iteration") if line.startswith("|")] == [
        "| offset: 10 CreateTime: 1000 keySize: 2 valueSize: 3 sequence: 20 headerKeys: [h1,h2]",
        "| offset: 11 CreateTime: 1005 keySize: -1 valueSize: -1 sequence: 21 headerKeys: []",
        "| offset: 12 CreateTime: 1002 keySize: 8 valueSize: 2 sequence: 22 headerKeys: []",
        "| offset: 13 CreateTime: 2000 keySize: 1 valueSize: 2 sequence: -1 headerKeys: []",
        "| offset: 14 CreateTime: 3000 keySize: 4 valueSize: 6 sequence: -1 headerKeys: [] " + MARKER,
    ]
    contents = [line for line in dump("--files", path, "--print-data-log") if line.startswith("|")]
    assert contents[0].endswith("headerKeys: [h1,h2] key: k1 payload: one")
    assert contents[1].endswith("headerKeys: []")
    assert contents[2].endswith("key: ключ payload: v\ufffd")
    bare = dump(path, "--print-data-log", "--skip-record-metadata")
    assert "| key: k1 payload: one" in bare


def test_text_is_offset_key_payload_of_data(directory: Path) -> None:
    assert dump(directory / f"{BASE}.log", "--text") == [
        "10 k1 one",
        "11 null null",
        "12 ключ v\ufffd",
        "13 k tx",
    ]


@pytest.mark.parametrize("option", [("--json",), ("--format", "json"), ("--output", "jsonl")])
def test_json_has_a_batch_a_line(directory: Path, option: tuple[str, ...]) -> None:
    batches = [json.loads(line) for line in dump(directory / f"{BASE}.log", *option)]
    assert [batch["base_offset"] for batch in batches] == [10, 13, 14]
    assert batches[0]["records"][0] == {
        "offset": 10,
        "timestamp": 1000,
        "key": "k1",
        "value": "one",
        "headers": [["h1", "x"], ["h2", None]],
    }
    assert all(batch["valid"] for batch in batches)


def test_a_damaged_batch_and_a_torn_tail_are_told(directory: Path) -> None:
    path = directory / f"{BASE}.log"
    data = bytearray(path.read_bytes())
    data[-2] ^= 0xFF
    path.write_bytes(data + data[:70])
    lines = dump(path, "--deep-iteration")
    assert next(line for line in lines if line.startswith("baseOffset: 14")).endswith("isvalid: false")
    assert lines[-1] == f"Found 70 invalid bytes at the end of {path.name}"


def test_reading_can_be_limited(directory: Path) -> None:
    """To whole batches, of which the first has 106 bytes."""
    assert len(dump(directory / f"{BASE}.log", "--max-bytes", 105)) == 2
    assert len(dump(directory / f"{BASE}.log", "--max-bytes", 106)) == 3


def test_indexes(directory: Path) -> None:
    names = [directory / f"{BASE}.{suffix}" for suffix in ("index", "timeindex", "txnindex")]
    marker_position = (directory / f"{BASE}.log").stat().st_size - 78
    assert dump("--files", ",".join(map(str, names))) == [
        f"Dumping {names[0]}",
        "offset: 13 position: 106",
        f"offset: 14 position: {marker_position}",
        f"Dumping {names[1]}",
        "timestamp: 2000 offset: 13",
        "timestamp: 3000 offset: 14",
        f"Dumping {names[2]}",
        "version: 0 producerId: 7 firstOffset: 10 lastOffset: 14 lastStableOffset: 15",
    ]
    assert dump("--verify-index", *names[:2]) == [f"Dumping {names[0]}", f"Dumping {names[1]}"]


@pytest.mark.parametrize(
    ("suffix", "entry", "line"),
    [
        ("index", pack(">ii", 3, 0), "  Index offset: 13, log offset: 12"),
        ("timeindex", pack(">qi", 1500, 3), "  Index timestamp: 1500, log timestamp: 2000"),
    ],
)
def test_an_index_that_disagrees_is_a_failure(directory: Path, suffix: str, entry: bytes, line: str) -> None:
    path = directory / f"{BASE}.{suffix}"
    path.write_bytes(entry)
    result = CliRunner().invoke(sskafka, ["log", "dump", "--verify-index", str(path)])
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [f"Dumping {path}"]
    heading, found, *_ = result.stderr.splitlines()
    assert heading.endswith(f":{path}")
    assert found == line
    assert "does not agree with its segment" in result.stderr


def test_offsets_that_an_index_invented(directory: Path) -> None:
    path = directory / f"{BASE}.timeindex"
    path.write_bytes(pack(">qi", 2000, 1) + pack(">qi", 1500, 3) + pack(">qi", 3000, 9))
    result = CliRunner().invoke(sskafka, ["log", "dump", "--verify-index-only", str(path)])
    assert result.exit_code == 1
    for line in (
        "  Index timestamp: 1500, log timestamp: 2000",
        "  Index timestamp: 1500, Previously indexed timestamp: 2000",
        "Indexed offset: 11, found log offset: 12",
        "Indexed offset: 19, found log offset: -1",
    ):
        assert line in result.stderr.splitlines()


def test_index_sanity_check(directory: Path) -> None:
    good, bad, empty = directory / f"{BASE}.index", directory / f"{BASE}.timeindex", directory / "0.index"
    empty.touch()
    assert dump("--index-sanity-check", good, empty)[1::2] == [f"{good} passed sanity check.", f"{empty} is empty."]
    assert "below the first" in str(sskafka_error("log", "dump", "--index-sanity-check", bad))
    good.write_bytes(b"123")
    assert "not a multiple of 8" in str(sskafka_error("log", "dump", "--index-sanity-check", good))


def sskafka_error(*arguments: object) -> str:
    result = CliRunner().invoke(sskafka, [str(argument) for argument in arguments])
    assert result.exit_code == 1
    return result.stderr


def test_messages_of_old_formats(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(old_segment())
    lines = dump(path, "--print-data-log")
    assert lines[2].startswith("offset: 0 position: 0 NoTimestampType: -1 size: 33 magic: 0 compresscodec: none crc: ")
    assert [line.partition(" crc")[0] for line in lines if line.startswith("| offset: 6")] == [
        "| offset: 6 CreateTime: 3001 keySize: -1 valueSize: 2 isValid: true"
    ]
    assert [line.partition(" key")[0] for line in lines if line.startswith("| offset: 9")] == [
        "| offset: 9 LogAppendTime: 9000"
    ]
    assert dump(path, "--text") == [
        "0 key zero",
        "1 null null",
        "2 k2 v2",
        "3 k3 v3",
        "4 ключ four",
        *(f"{5 + number} null r{number}" for number in range(3)),
        *(f"{8 + number} null r{number}" for number in range(3)),
    ]
    objects = [json.loads(line) for line in dump(path, "--json")]
    assert [one["last_offset"] for one in objects] == [0, 1, 3, 4, 7, 10]


def coordinator_line(tmp_path: Path, key: bytes, value: bytes | None, option: str) -> str:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(build_batch([NewRecord(key, value)]))
    return dump(path, option, "--skip-record-metadata")[-1]


def test_committed_offsets(tmp_path: Path) -> None:
    key = pack(">h", 1) + encode(OffsetCommitKey("readers", "orders", 3), 0)
    value = pack(">h", 3) + encode(OffsetCommitValue(17, 2, "note", 1000), 3)
    assert coordinator_line(tmp_path, key, value, "--offsets-decoder") == (
        '| key: {"type":"1","data":{"group":"readers","topic":"orders","partition":3}} payload: '
        '{"version":"3","data":{"offset":17,"leaderEpoch":2,"metadata":"note","commitTimestamp":1000}}'
    )
    assert coordinator_line(tmp_path, key, None, "--offsets-decoder").endswith(" payload: <DELETE>")


def test_members_of_groups(tmp_path: Path) -> None:
    subscription = pack(">h", 1) + encode(ConsumerProtocolSubscription(["orders"]), 1)
    members = [MemberMetadata("m-1", None, "c", "/1", 300, 45, subscription, b"\x00")]
    key = pack(">h", 2) + encode(GroupMetadataKey("readers"), 0)
    value = pack(">h", 3) + encode(GroupMetadataValue("consumer", 4, "range", "m-1", 5, members), 3)
    line = coordinator_line(tmp_path, key, value, "--offsets-decoder")
    shown = json.loads(line.partition("payload: ")[2])["data"]["members"][0]
    assert shown["subscription"] == {"topics": ["orders"], "userData": None, "ownedPartitions": []}
    assert shown["assignment"] == "AA=="


def test_transactions(tmp_path: Path) -> None:
    key = pack(">h", 0) + encode(TransactionLogKey("payments"), 0)
    line = coordinator_line(
        tmp_path, key, pack(">h", 0) + encode(TransactionLogValue(7), 0), "--transaction-log-decoder"
    )
    assert line.startswith('| key: {"type":"0","data":{"transactionalId":"payments"}} payload: {"version":"0","data":')


def test_records_that_no_decoder_knows(tmp_path: Path) -> None:
    unknown = coordinator_line(tmp_path, pack(">h", 99), b"", "--offsets-decoder")
    assert unknown == "| key: Unknown record type 99 at offset 0, skipping."
    for key, value in ((b"", b""), (pack(">h", 1), None), (pack(">h", 2) + b"\0\1g", pack(">h", 99))):
        assert "key: Error at offset 0, skipping." in coordinator_line(tmp_path, key, value, "--offsets-decoder")


def test_keys_and_values_that_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(build_batch([NewRecord(pack(">q", 7), pack(">i", -1)), NewRecord(b"odd", b"v")]))
    classes = (
        "--key-decoder-class",
        "org.apache.kafka.tools.api.LongDecoder",
        "--value-decoder-class",
        "IntegerDecoder",
    )
    first, second = dump(path, *classes)[-2:]
    assert first.endswith("key: 7 payload: -1")
    assert second.endswith("key: 0x6f6464 payload: 0x76")
    dump(path, "--key-decoder-class", "com.example.Mine", exit_code=2)


def test_producer_snapshots_and_epochs(tmp_path: Path) -> None:
    producer = ProducerEntry(7, 1)
    producer.batches.append(ProducedBatch(last_sequence=22, last_offset=12, offset_delta=2, timestamp=1005))
    producer.last_timestamp = 1005
    producer.transaction_first_offset = 10
    snapshot = tmp_path / f"{BASE}.snapshot"
    snapshot.write_bytes(encode_snapshot([producer]))
    epochs = tmp_path / "leader-epoch-checkpoint"
    epochs.write_text("0\n2\n0 0\n3 17\n")
    assert dump(snapshot, epochs)[1::2] == [
        PRODUCER,
        "epoch: 0 startOffset: 0",
    ]
    assert dump(epochs)[-1] == "epoch: 3 startOffset: 17"


def test_metadata_records_are_printed_as_json(tmp_path: Path) -> None:
    topic_id = parse_uuid("kaM002ZORxCsICx_-s4BQg")
    records = [
        FeatureLevelRecord(name="metadata.version", feature_level=30),
        TopicRecord(name="orders", topic_id=topic_id),
    ]
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(build_batch([NewRecord(None, encode_record(record)) for record in records]))
    payloads = [line.partition("payload: ")[2] for line in dump(path, "--cluster-metadata-decoder")[3:]]
    assert payloads == [
        '{"type":"FEATURE_LEVEL_RECORD","version":0,"data":{"name":"metadata.version","featureLevel":30}}',
        '{"type":"TOPIC_RECORD","version":0,"data":{"name":"orders","topicId":"kaM002ZORxCsICx_-s4BQg"}}',
    ]


def test_what_is_no_log_file(tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("hello")
    for path, words in [(other, "is not a log file"), (tmp_path / "none.log", "is not a file")]:
        result = CliRunner().invoke(sskafka, ["log", "dump", str(path)])
        assert result.exit_code == 1
        assert words in result.stderr
    assert CliRunner().invoke(sskafka, ["log", "dump"]).exit_code == 2


def test_a_bootstrap_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "bootstrap.checkpoint"
    path.write_bytes(build_batch([NewRecord(value=encode_record(FeatureLevelRecord("group.version", 1), 20))]))
    lines = dump(path, "--cluster-metadata-decoder")
    assert lines[1] == "KRaft bootstrap snapshot"
    assert "group.version" in lines[-1]
