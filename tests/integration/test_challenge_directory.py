"""A log directory that somebody else prepared is served as it is.

It is laid out as the Kafka challenge does it: a metadata log that begins at offset 1 and knows no brokers, partition
logs without index or checkpoint files, topic ids in padded base64, and batches that no validating broker would have
taken. Answers are compared with the prepared bytes.
"""

import base64
from collections.abc import Sequence
from pathlib import Path

import pytest
from broker_process import BrokerProcess, StartBroker
from wire_connection import Connection, values_batch

from sskafka.metadata.record_codec import encode_record
from sskafka.metadata.records import FeatureLevelRecord, MetadataRecord, PartitionRecord, TopicRecord
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ZERO_UUID
from sskafka.records.batch import assign_offset, iter_headers, read_header
from sskafka.records.builder import NewRecord, build_batch, frame
from sskafka.wire.messages.api_versions import ApiVersionsRequest
from sskafka.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from sskafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from sskafka.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

METADATA_VERSION = 20
TIMESTAMP = 1_726_045_943_832
DIRECTORY_ID = bytes.fromhex("10000000000040008000000000000001")
SOMEONE_ELSES_DIRECTORY_ID = bytes.fromhex("20000000000040008000000000000002")
FIRST_SEGMENT = "00000000000000000000.log"

TOPIC_IDS = {
    "bar": bytes.fromhex("00000000000040008000000000000091"),
    "foo": bytes.fromhex("00000000000040008000000000000042"),
    "quz": bytes.fromhex("00000000000040008000000000000077"),
}
PARTITION_COUNTS = {"bar": 1, "foo": 2, "quz": 1}

SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@localhost:9093",
    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "inter.broker.listener.name": "PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "num.network.threads": "3",
    "num.io.threads": "8",
    "socket.send.buffer.bytes": "102400",
    "offsets.topic.replication.factor": "1",
    "log.retention.hours": "168",
    "log.segment.bytes": "1073741824",
}


def metadata_batch(base_offset: int, records: Sequence[MetadataRecord]) -> bytes:
    values = [encode_record(record, METADATA_VERSION) for record in records]
    new = [NewRecord(value=value, timestamp=TIMESTAMP) for value in values]
    return bytes(build_batch(new, base_offset=base_offset, leader_epoch=1))


def partition_record(topic: str, partition: int) -> PartitionRecord:
    directory_id = SOMEONE_ELSES_DIRECTORY_ID if topic == "quz" else DIRECTORY_ID
    record = PartitionRecord(
        partition_id=partition,
        topic_id=TOPIC_IDS[topic],
        replicas=[1],
        isr=[1],
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
        directories=[directory_id],
    )
    assert encode_record(record, METADATA_VERSION)[:3] == b"\1\3\1"  # the version 1 of partition records
    return record


def metadata_log() -> bytes:
    batches = [metadata_batch(1, [FeatureLevelRecord("metadata.version", METADATA_VERSION)])]
    offset = 2
    for topic, count in PARTITION_COUNTS.items():
        records = [TopicRecord(topic, TOPIC_IDS[topic]), *(partition_record(topic, p) for p in range(count))]
        batches.append(metadata_batch(offset, records))
        offset += len(records)
    return b"".join(batches)


def odd_batch(base_offset: int, value: bytes) -> bytes:
    """One record with a header count of -1, and the producer id and sequence that every other batch has too."""
    record = b"\0\0\0\1" + bytes([2 * len(value)]) + value + b"\1"  # no key; varints are zigzag: 1 is -1
    header = read_header(values_batch(b"template", producer_id=0, producer_epoch=0, base_sequence=0))
    batch = frame(header._replace(base_offset=base_offset, leader_epoch=0), bytes([2 * len(record)]) + record)
    return bytes(batch)


FOO_LOG = b"".join(odd_batch(offset, b"message %d" % offset) for offset in range(3))


def write_partition(data: Path, topic: str, partition: int, log: bytes) -> None:
    directory = data / f"{topic}-{partition}"
    directory.mkdir(parents=True)
    (directory / FIRST_SEGMENT).write_bytes(log)
    padded = base64.urlsafe_b64encode(TOPIC_IDS[topic]).decode()
    (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {padded}")


def write_meta_properties(data: Path) -> None:
    data.mkdir(parents=True, exist_ok=True)
    lines = ("#", "#Wed Oct 09 12:46:21 UTC 2024", "node.id=1", "version=1", "cluster.id=IAAAAAAAQACAAAAAAAAAAQ")
    directory_id = base64.urlsafe_b64encode(DIRECTORY_ID).decode().rstrip("=")
    (data / "meta.properties").write_text("\n".join((*lines, f"directory.id={directory_id}", "")))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    data = tmp_path / "broker" / "data"
    write_meta_properties(data)
    (data / "__cluster_metadata-0").mkdir()
    (data / "__cluster_metadata-0" / FIRST_SEGMENT).write_bytes(metadata_log())
    write_partition(data, "foo", 0, FOO_LOG)
    write_partition(data, "foo", 1, b"")
    write_partition(data, "bar", 0, b"")
    write_partition(data, "quz", 0, odd_batch(0, b"alone"))
    return data


@pytest.fixture
def broker(start_broker: StartBroker, data: Path) -> BrokerProcess:
    return start_broker(SETTINGS)


def fetch_by_id(connection: Connection, topic_id: bytes, partition: int = 0, offset: int = 0) -> PartitionData:
    wanted = FetchPartition(partition, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(max_wait_ms=500, min_bytes=1, topics=[FetchTopic(topic_id=topic_id, partitions=[wanted])])
    (topic,) = connection.call(request, version=16).responses
    assert topic.topic_id == topic_id
    data: PartitionData = topic.partitions[0]
    return data


def test_a_directory_with_nothing_but_meta_properties(start_broker: StartBroker, tmp_path: Path) -> None:
    write_meta_properties(tmp_path / "broker" / "data")
    with Connection(start_broker(SETTINGS).bootstrap) as connection:
        response = connection.call(ApiVersionsRequest("kafka-cli", "0.1"), version=4)
        ranges = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
        assert (ranges[18], ranges[75]) == ((0, 4), (0, 0))
        assert fetch_by_id(connection, bytes(range(16))).error_code == ErrorCode.UNKNOWN_TOPIC_ID
        connection.create_topic("new")
        assert connection.produce("new", values_batch(b"value")).error_code == 0


def test_prepared_topics_are_described(broker: BrokerProcess) -> None:
    with Connection(broker.bootstrap) as connection:
        names = ("quz", "unknown", "foo", "bar")
        request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name) for name in names])
        topics = connection.call(request, version=0).topics
    assert [topic.name for topic in topics] == ["bar", "foo", "quz", "unknown"]
    assert [topic.error_code for topic in topics] == [0, 0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert [topic.topic_id for topic in topics] == [*TOPIC_IDS.values(), ZERO_UUID]
    assert [[p.partition_index for p in topic.partitions] for topic in topics] == [[0], [0, 1], [0], []]
    for partition in topics[1].partitions:
        assert (partition.error_code, partition.leader_id) == (0, 1)
        assert partition.replica_nodes == partition.isr_nodes == [1]


def test_prepared_batches_are_served_as_bytes(broker: BrokerProcess, data: Path) -> None:
    with Connection(broker.bootstrap) as connection:
        foo = fetch_by_id(connection, TOPIC_IDS["foo"])
        assert (foo.error_code, foo.high_watermark, bytes(foo.records or b"")) == (0, 3, FOO_LOG)
        assert bytes(fetch_by_id(connection, TOPIC_IDS["quz"]).records or b"") == odd_batch(0, b"alone")
        assert bytes(fetch_by_id(connection, TOPIC_IDS["bar"]).records or b"") == b""
        unknown = fetch_by_id(connection, bytes(range(16)))
        assert (unknown.partition_index, unknown.error_code) == (0, ErrorCode.UNKNOWN_TOPIC_ID)
    assert (data / "foo-0" / FIRST_SEGMENT).read_bytes() == FOO_LOG


def produce_to(connection: Connection, topics: dict[str, dict[int, bytes]]) -> dict[tuple[str, int], tuple[int, ...]]:
    """Error code, base offset, append time and log start offset by partition, with Produce version 11."""
    topic_data = [
        TopicProduceData(name, partition_data=[PartitionProduceData(p, batch) for p, batch in partitions.items()])
        for name, partitions in topics.items()
    ]
    response = connection.call(ProduceRequest(acks=1, timeout_ms=1000, topic_data=topic_data), version=11)
    return {
        (topic.name, p.index): (p.error_code, p.base_offset, p.log_append_time_ms, p.log_start_offset)
        for topic in response.responses
        for p in topic.partition_responses
    }


def batches_in(directory: Path) -> list[bytes]:
    """The batches of a partition as they were sent: without the offset and leader epoch that the leader wrote."""
    log = bytearray((directory / FIRST_SEGMENT).read_bytes())
    batches = []
    for position, header in iter_headers(bytes(log)):
        assign_offset(log, position, base_offset=0, leader_epoch=0)
        batches.append(bytes(log[position : position + header.size_bytes]))
    return batches


def test_produced_batches_are_in_the_file_when_the_answer_leaves(broker: BrokerProcess, data: Path) -> None:
    batch = bytes(values_batch(b"hello", leader_epoch=0))
    with Connection(broker.bootstrap) as connection:
        assert produce_to(connection, {"bar": {0: batch}}) == {("bar", 0): (0, 0, -1, 0)}
        assert batches_in(data / "bar-0") == [batch]
        assert produce_to(connection, {"bar": {0: batch}, "foo": {0: batch, 1: batch}}) == {
            ("bar", 0): (0, 1, -1, 0),
            ("foo", 0): (0, 3, -1, 0),
            ("foo", 1): (0, 0, -1, 0),
        }
        assert batches_in(data / "bar-0") == [batch, batch]
        assert (data / "foo-0" / FIRST_SEGMENT).read_bytes()[: len(FOO_LOG)] == FOO_LOG


def test_producing_to_what_is_not_there(broker: BrokerProcess) -> None:
    batch = bytes(values_batch(b"lost"))
    nowhere = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1, -1)
    with Connection(broker.bootstrap) as connection:
        assert produce_to(connection, {"nothing": {0: batch}, "bar": {7: batch}}) == {
            ("nothing", 0): nowhere,
            ("bar", 7): nowhere,
        }


def test_several_connections_with_several_requests(broker: BrokerProcess) -> None:
    connections = [Connection(broker.bootstrap) for _ in range(3)]
    request = ApiVersionsRequest("kafka-cli", "0.1")
    try:
        sent = [[connection.send(request, version=4) for connection in connections] for _ in range(3)]
        for round_ in sent:
            assert [connection.receive()[0] for connection in connections] == round_
    finally:
        for connection in connections:
            connection.socket.close()


@pytest.mark.parametrize("unclean", [False, True], ids=["clean", "kill -9"])
def test_served_again_after_a_restart(broker: BrokerProcess, unclean: bool) -> None:
    with Connection(broker.bootstrap) as connection:
        assert connection.produce("bar", values_batch(b"kept")).error_code == 0
    broker.restart(unclean=unclean)
    with Connection(broker.bootstrap) as connection:
        assert bytes(fetch_by_id(connection, TOPIC_IDS["foo"]).records or b"") == FOO_LOG
        assert fetch_by_id(connection, TOPIC_IDS["bar"]).high_watermark == 1
        assert connection.topic_metadata("foo").topic_id == TOPIC_IDS["foo"]
