"""`sskafka log dump` beside kafka-dump-log: the same files, line by line the same words."""

import sys
from collections.abc import Callable
from pathlib import Path
from struct import pack

import pytest
from benchmarks.brokers import Broker, BrokerKind
from confluent_kafka import Consumer
from programs import APACHE_KAFKA, JavaTools
from typer.testing import CliRunner
from written import create_topics, write_codecs, write_segments, write_transactions

from sskafka.cli.commands import app
from sskafka.records.builder import NewRecord, build_batch
from sskafka.wire.codec import encode
from sskafka.wire.messages.share_state_records import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
    StateBatch,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from legacy_messages import old_segment

DUMP = "org.apache.kafka.tools.DumpLogSegments"
SETTINGS = {
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "metadata.log.max.record.bytes.between.snapshots": "2000",
}


@pytest.fixture(scope="module")
def data(broker_kind: Callable[[str], BrokerKind], tmp_path_factory: pytest.TempPathFactory, java: JavaTools) -> Path:
    """What Apache Kafka leaves behind: every codec, several segments, transactions, a group, metadata snapshots."""
    directory = tmp_path_factory.mktemp("dumped")
    with broker_kind(APACHE_KAFKA).running(directory, SETTINGS) as broker:
        create_topics(broker)
        write_codecs(broker, java)
        write_segments(broker)
        write_transactions(broker)
        read_as_group(broker)
    return directory / "data"


def read_as_group(broker: Broker) -> None:
    """Offsets and members of a classic group, and of one by the newer protocol."""
    for protocol in ("classic", "consumer"):
        settings = {"bootstrap.servers": broker.bootstrap, "group.id": protocol, "auto.offset.reset": "earliest"}
        consumer = Consumer({**settings, "group.protocol": protocol, "enable.auto.commit": False})
        consumer.subscribe(["codecs"])
        try:
            read = consumer.consume(10, 30)
            assert read
            consumer.commit(asynchronous=False)
        finally:
            consumer.close()


def assert_same(java: JavaTools, paths: list[Path], *options: str) -> list[str]:
    assert paths
    names = ",".join(str(path) for path in sorted(paths))
    expected = java.run(DUMP, "--files", names, *options).splitlines()
    result = CliRunner().invoke(app, ["log", "dump", "--files", names, *options])
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == expected
    return expected


@pytest.mark.parametrize("options", [(), ("--deep-iteration",), ("--print-data-log",)])
def test_batches_and_records(options: tuple[str, ...], data: Path, java: JavaTools) -> None:
    assert_same(java, [*data.glob("codecs-*/*.log"), *data.glob("transactions-*/*.log")], *options)


def test_options_of_records(data: Path, java: JavaTools) -> None:
    codecs = list(data.glob("codecs-0/*.log"))
    assert_same(java, codecs, "--print-data-log", "--skip-record-metadata")
    assert_same(java, list(data.glob("segments-0/*.log"))[:1], "--max-bytes", "50000", "--deep-iteration")
    assert_same(java, codecs, "--value-decoder-class", "org.apache.kafka.tools.api.StringDecoder")


def test_files_beside_segments(data: Path, java: JavaTools) -> None:
    indexes = [*data.glob("segments-0/*.index"), *data.glob("segments-0/*.timeindex")]
    assert any(line.startswith("offset: ") for line in assert_same(java, indexes))
    assert_same(java, indexes, "--verify-index-only")
    assert_same(java, indexes, "--index-sanity-check")
    others = [*data.glob("segments-0/*.snapshot"), *data.glob("transactions-0/*.snapshot")]
    assert assert_same(java, [*others, *data.glob("transactions-0/*.txnindex")])


def test_committed_offsets_and_groups(data: Path, java: JavaTools) -> None:
    lines = assert_same(java, list(data.glob("__consumer_offsets-*/*.log")), "--offsets-decoder")
    assert any('"type":"1"' in line for line in lines)
    assert any('"subscription":{"topics":["codecs"]' in line for line in lines)
    assert any('"type":"3"' in line for line in lines)
    assert any("<DELETE>" in line for line in lines)


def test_states_of_transactions(data: Path, java: JavaTools) -> None:
    lines = assert_same(java, list(data.glob("__transaction_state-*/*.log")), "--transaction-log-decoder")
    assert any('"transactionalId":"interop"' in line for line in lines)


def test_cluster_metadata_and_its_snapshots(data: Path, java: JavaTools) -> None:
    logs, snapshots = data.glob("__cluster_metadata-0/*.log"), list(data.glob("__cluster_metadata-0/*.checkpoint"))
    assert_same(java, [*logs, *snapshots, data / "bootstrap.checkpoint"], "--cluster-metadata-decoder")
    assert snapshots, "how many there are is a matter of time"


def test_states_of_share_groups(tmp_path: Path, java: JavaTools) -> None:
    topic_id, batches = bytes(range(16)), [StateBatch(5, 9, 2, 3)]
    records = [
        (ShareSnapshotKey("g", topic_id, 3), ShareSnapshotValue(1, 2, 3, 4, 5, 6, 7, batches)),
        (ShareUpdateKey("g", topic_id, 3), ShareUpdateValue(1, 2, -1, -1, batches)),
        (ShareUpdateKey("gone", topic_id, 3), None),
    ]
    new = [
        NewRecord(
            pack(">h", key.SCHEMA.key) + encode(key, 0), None if value is None else pack(">h", 0) + encode(value, 0)
        )
        for key, value in records
    ]
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(build_batch(new))
    lines = assert_same(java, [path], "--share-group-state-decoder")
    assert "deliveryCompleteCount" in lines[3]
    assert len(lines) == 6


def test_messages_of_old_formats(tmp_path: Path, java: JavaTools) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(old_segment())
    assert len(assert_same(java, [path])) == 8
    assert len(assert_same(java, [path], "--print-data-log")) == 19
