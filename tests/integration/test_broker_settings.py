"""Settings of a broker at work: where they come from, and what they do to topics and partitions."""

import subprocess
import sys
from pathlib import Path

import pytest
from broker_process import BrokerProcess, StartBroker
from waiting import wait_until
from wire_connection import Connection, records_in, values_batch, values_in

from sskafka.model.errors import ErrorCode
from sskafka.records.batch import read_header
from sskafka.records.compression import Compression
from sskafka.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest


def test_auto_creation_follows_the_settings(start_broker: StartBroker) -> None:
    broker = start_broker({"num.partitions": 6})
    with Connection(broker.bootstrap) as connection:
        assert len(connection.auto_create_topic("made").partitions) == 6
    broker.stop()
    broker.settings["auto.create.topics.enable"] = "false"
    with Connection(broker.start().bootstrap) as connection:
        refused = connection.topic_metadata("unmade", create=True)
        assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert len(connection.topic_metadata("made").partitions) == 6


@pytest.mark.usefixtures("_ours")
def test_environment_and_command_line_win_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSKAFKA_NUM_PARTITIONS", "3")
    broker = BrokerProcess(tmp_path / "broker", {"num.partitions": 2})
    try:
        with Connection(broker.start().bootstrap) as connection:
            assert len(connection.auto_create_topic("by-environment").partitions) == 3
        broker.stop()
        broker.options = ("--set", "num.partitions=4")
        with Connection(broker.start().bootstrap) as connection:
            assert len(connection.auto_create_topic("by-option").partitions) == 4
    finally:
        broker.close()


def test_partitions_are_spread_over_directories(start_broker: StartBroker, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    broker = start_broker({"log.dirs": f"{one},{two}"})
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("spread", 6)
        for partition in range(6):
            connection.produce("spread", values_batch(b"%d" % partition), partition)
    places = [{path.name for path in directory.glob("spread-*")} for directory in (one, two)]
    assert [len(names) for names in places] == [3, 3]
    broker.restart(unclean=True)
    with Connection(broker.bootstrap) as connection:
        for partition in range(6):
            assert values_in(connection.fetch("spread", partition=partition)) == [b"%d" % partition]
    assert [{path.name for path in directory.glob("spread-*")} for directory in (one, two)] == places


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD])
def test_topics_with_a_compression_of_their_own(connection: Connection, topic: str, codec: Compression) -> None:
    connection.create_topic(topic, compression_type=codec.name.lower())
    values = [b"%d" % n * 100 for n in range(50)]
    assert connection.produce(topic, values_batch(*values)).error_code == 0
    fetched = connection.fetch(topic)
    assert read_header(fetched.records or b"").compression == codec
    assert [(record.offset, record.value) for record in records_in(fetched)] == list(enumerate(values))


def test_uncompressed_topics(connection: Connection, topic: str) -> None:
    connection.create_topic(topic, compression_type="uncompressed")
    assert connection.produce(topic, values_batch(b"value" * 100, compression=Compression.ZSTD)).error_code == 0
    assert read_header(connection.fetch(topic).records or b"").compression == Compression.NONE


def test_no_more_replicas_are_waited_for_than_there_are(connection: Connection, topic: str) -> None:
    connection.create_topic(topic, min_insync_replicas=2)
    assert connection.produce(topic, values_batch(b"value"), acks=-1).error_code == 0


@pytest.mark.usefixtures("_ours")
def test_without_a_file_a_single_node_runs_here(tmp_path: Path) -> None:
    settings = ("listeners=PLAINTEXT://127.0.0.1:0", "http.listener=127.0.0.1:0", "adr.listener=127.0.0.1:0")
    broker = BrokerProcess(tmp_path, file=False, options=[word for setting in settings for word in ("--set", setting)])
    try:
        with Connection(broker.start().bootstrap) as connection:
            connection.create_topic("topic")
        assert (tmp_path / "sskafka-data" / "data" / "topic-0").is_dir()
    finally:
        broker.close()


def test_storage_tool_formats_what_the_broker_then_serves(start_broker: StartBroker, tmp_path: Path) -> None:
    script = str(Path(sys.executable).with_name("sskafka"))
    cluster_id = "4L6g3nShT-eMCtK--X86sw"
    properties = tmp_path / "format.properties"
    properties.write_text(f"node.id=1\nlisteners=PLAINTEXT://127.0.0.1:0\nlog.dirs={tmp_path / 'broker' / 'data'}\n")
    command = [script, "storage", "format", "-t", cluster_id, "-c", str(properties)]
    subprocess.run(command, check=True, capture_output=True)
    broker = start_broker()
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("topic")
    assert f"cluster.id={cluster_id}" in (broker.data_directory / "meta.properties").read_text()


def test_silent_producers_are_forgotten_at_the_interval(start_broker: StartBroker) -> None:
    """Looked for every ten minutes by default, which no test would live to see."""
    broker = start_broker({"producer.id.expiration.ms": 1, "producer.id.expiration.check.interval.ms": 1})
    asked = DescribeProducersRequest([TopicRequest("orders", [0])])
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("orders")
        batch = values_batch(b"v", producer_id=7, producer_epoch=0, base_sequence=0)
        assert connection.produce("orders", batch).error_code == 0

        def is_forgotten() -> bool:
            return not connection.call(asked, 0).topics[0].partitions[0].active_producers

        wait_until(is_forgotten, "the partition has forgotten its producer")
