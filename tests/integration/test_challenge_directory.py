"""A log directory that somebody else prepared is served as it is.

It is laid out as the Kafka challenge does it: a metadata log that begins at offset 1 and knows no brokers, partition
logs without index or checkpoint files, topic ids in padded base64, and batches that no validating broker would have
taken. Answers are compared with the prepared bytes, field by field.
"""

from pathlib import Path

import pytest
from broker_process import BrokerProcess, StartBroker
from http_client import HttpClient, ok
from wire_connection import Connection, values_batch

from sskafka.challenge.log_directory import FIRST_SEGMENT, PreparedTopic, prepare, prepared_batches
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ZERO_UUID, uuid_text
from sskafka.records.batch import assign_offset, iter_headers
from sskafka.records.record import decode_records
from sskafka.wire.messages import describe_topic_partitions, fetch, produce
from sskafka.wire.messages.api_versions import ApiVersionsRequest

SOMEONE_ELSES_DIRECTORY_ID = bytes.fromhex("20000000000040008000000000000002")
FOO_BATCHES = prepared_batches(b"message %d" % offset for offset in range(3))
FOO_LOG = b"".join(FOO_BATCHES)
QUZ_BATCHES = prepared_batches([b"alone"])
BAR = PreparedTopic("bar", bytes.fromhex("00000000000040008000000000000091"), ((),))
FOO = PreparedTopic("foo", bytes.fromhex("00000000000040008000000000000042"), (FOO_BATCHES, ()))
QUZ = PreparedTopic(
    "quz", bytes.fromhex("00000000000040008000000000000077"), (QUZ_BATCHES,), SOMEONE_ELSES_DIRECTORY_ID
)
UNKNOWN_ID = bytes(range(16))

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


@pytest.fixture
def data(tmp_path: Path) -> Path:
    directory = tmp_path / "broker" / "data"
    prepare(directory, [BAR, FOO, QUZ])
    return directory


@pytest.fixture
def broker(start_broker: StartBroker, data: Path) -> BrokerProcess:
    return start_broker(SETTINGS)


def fetch_request(topic_id: bytes, partition: int = 0, offset: int = 0) -> fetch.FetchRequest:
    wanted = fetch.FetchPartition(partition, fetch_offset=offset, partition_max_bytes=1 << 20)
    topic = fetch.FetchTopic(topic_id=topic_id, partitions=[wanted])
    return fetch.FetchRequest(max_wait_ms=500, min_bytes=1, topics=[topic])


def fetch_by_id(connection: Connection, topic_id: bytes, partition: int = 0, offset: int = 0) -> fetch.PartitionData:
    """The one partition of an answer in which every other field is as it must be."""
    response = connection.call(fetch_request(topic_id, partition, offset), version=16)
    (data,) = response.responses[0].partitions
    expected = fetch.FetchableTopicResponse(topic_id=topic_id, partitions=[data])
    assert response == fetch.FetchResponse(responses=[expected])
    data.records = bytes(data.records or b"")
    assert isinstance(data, fetch.PartitionData)
    return data


def fetched(partition: int, end_offset: int, records: bytes) -> fetch.PartitionData:
    return fetch.PartitionData(
        partition, 0, end_offset, end_offset, 0, aborted_transactions=None, preferred_read_replica=-1, records=records
    )


def test_what_is_prepared_is_as_odd_as_it_should_be(data: Path) -> None:
    """Nothing that a broker would have written itself."""
    assert sorted(path.name for path in (data / "foo-0").iterdir()) == [FIRST_SEGMENT, "partition.metadata"]
    assert (data / "foo-0" / "partition.metadata").read_text().endswith("topic_id: AAAAAAAAQACAAAAAAAAAQg==\n")
    metadata = (data / "__cluster_metadata-0" / FIRST_SEGMENT).read_bytes()
    values = [
        record.value or b""
        for position, header in iter_headers(metadata)
        for record in decode_records(metadata, header, position)
    ]
    assert next(iter_headers(metadata))[1].base_offset == 1
    # Frame version, type and version: a feature level, then topics (2) with their partitions (3).
    assert [value[:3] for value in values] == [
        b"\x01\x0c\x00",
        *(b"\x01\x02\x00", b"\x01\x03\x01"),
        *(b"\x01\x02\x00", b"\x01\x03\x01", b"\x01\x03\x01"),
        *(b"\x01\x02\x00", b"\x01\x03\x01"),
    ]
    headers = [header for _, header in iter_headers(FOO_LOG)]
    assert {(header.producer_id, header.base_sequence) for header in headers} == {(0, 0)}
    assert all(batch.endswith(b"\x01") for batch in FOO_BATCHES)  # the header count -1, as a varint


def test_a_directory_with_nothing_but_meta_properties(start_broker: StartBroker, tmp_path: Path) -> None:
    prepare(tmp_path / "broker" / "data", [])
    with Connection(start_broker(SETTINGS).bootstrap) as connection:
        response = connection.call(ApiVersionsRequest("kafka-cli", "0.1"), version=4)
        ranges = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
        assert (response.error_code, response.throttle_time_ms) == (0, 0)
        assert (ranges[18], ranges[75]) == ((0, 4), (0, 0))
        assert fetch_by_id(connection, UNKNOWN_ID).error_code == ErrorCode.UNKNOWN_TOPIC_ID
        connection.create_topic("new")
        assert connection.produce("new", values_batch(b"value")).error_code == 0


def described(topic: PreparedTopic) -> describe_topic_partitions.DescribeTopicPartitionsResponseTopic:
    """Who may do what to it, and the epochs, are the broker's to say."""
    partitions = [
        describe_topic_partitions.DescribeTopicPartitionsResponsePartition(0, number, 1, 0, [1], [1], [], [], [])
        for number in topic.partitions
    ]
    return describe_topic_partitions.DescribeTopicPartitionsResponseTopic(
        0, topic.name, topic.topic_id, False, partitions
    )


def test_prepared_topics_are_described(broker: BrokerProcess) -> None:
    names = [describe_topic_partitions.TopicRequest(name) for name in ("quz", "unknown", "foo", "bar")]
    request = describe_topic_partitions.DescribeTopicPartitionsRequest(topics=names)
    with Connection(broker.bootstrap) as connection:
        response = connection.call(request, version=0)
    for topic in response.topics:
        topic.topic_authorized_operations = -(2**31)
    unknown = describe_topic_partitions.DescribeTopicPartitionsResponseTopic(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "unknown", ZERO_UUID
    )
    expected = [described(BAR), described(FOO), described(QUZ), unknown]
    assert response == describe_topic_partitions.DescribeTopicPartitionsResponse(0, expected, None)


def test_prepared_batches_are_served_as_bytes(broker: BrokerProcess, data: Path) -> None:
    with Connection(broker.bootstrap) as connection:
        assert fetch_by_id(connection, FOO.topic_id) == fetched(0, 3, FOO_LOG)
        assert fetch_by_id(connection, FOO.topic_id, offset=1) == fetched(0, 3, b"".join(FOO_BATCHES[1:]))
        assert fetch_by_id(connection, FOO.topic_id, partition=1) == fetched(1, 0, b"")
        assert fetch_by_id(connection, QUZ.topic_id) == fetched(0, 1, QUZ_BATCHES[0])
        assert fetch_by_id(connection, BAR.topic_id) == fetched(0, 0, b"")
        unknown = fetch_by_id(connection, UNKNOWN_ID)
        assert (unknown.partition_index, unknown.error_code) == (0, ErrorCode.UNKNOWN_TOPIC_ID)
        assert connection.call(fetch.FetchRequest(max_wait_ms=500), version=16) == fetch.FetchResponse()
    assert (data / "foo-0" / FIRST_SEGMENT).read_bytes() == FOO_LOG


def produce_to(
    connection: Connection, topics: dict[str, dict[int, bytes]]
) -> dict[tuple[str, int], produce.PartitionProduceResponse]:
    """The answers by partition, with Produce version 11."""
    topic_data = [
        produce.TopicProduceData(
            name, partition_data=[produce.PartitionProduceData(p, batch) for p, batch in partitions.items()]
        )
        for name, partitions in topics.items()
    ]
    request = produce.ProduceRequest(acks=1, timeout_ms=1000, topic_data=topic_data)
    response = connection.call(request, version=11)
    assert response == produce.ProduceResponse(responses=response.responses, throttle_time_ms=0)
    return {(topic.name, p.index): p for topic in response.responses for p in topic.partition_responses}


def produced(partition: int, base_offset: int) -> produce.PartitionProduceResponse:
    return produce.PartitionProduceResponse(partition, 0, base_offset, -1, log_start_offset=0)


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
        assert produce_to(connection, {"bar": {0: batch}}) == {("bar", 0): produced(0, 0)}
        assert (data / "bar-0" / FIRST_SEGMENT).read_bytes() == batch
        assert produce_to(connection, {"bar": {0: batch}, "foo": {0: batch, 1: batch}}) == {
            ("bar", 0): produced(0, 1),
            ("foo", 0): produced(0, 3),
            ("foo", 1): produced(1, 0),
        }
        assert batches_in(data / "bar-0") == [batch, batch]
        assert (data / "foo-0" / FIRST_SEGMENT).read_bytes()[: len(FOO_LOG)] == FOO_LOG


def test_producing_to_what_is_not_there(broker: BrokerProcess) -> None:
    batch = bytes(values_batch(b"lost"))
    with Connection(broker.bootstrap) as connection:
        answers = produce_to(connection, {"nothing": {0: batch}, "bar": {7: batch}})
    assert answers.keys() == {("nothing", 0), ("bar", 7)}
    for answer in answers.values():
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert (answer.base_offset, answer.log_append_time_ms, answer.log_start_offset) == (-1, -1, -1)
        assert answer.record_errors == []


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
        assert fetch_by_id(connection, FOO.topic_id).records == FOO_LOG
        assert fetch_by_id(connection, BAR.topic_id).high_watermark == 1
        assert connection.topic_metadata("foo").topic_id == FOO.topic_id


def test_the_console_shows_the_prepared_directory(start_broker: StartBroker, data: Path) -> None:
    broker = start_broker({**SETTINGS, "http.listener": "127.0.0.1:0"})
    http = HttpClient(broker.http)
    state = ok(http.get("/api/v1/challenge"))
    assert state["directories"] == [str(data)]
    assert state["metadata"]["first_offset"] == 1
    shown = {(one["topic"], one["partition"]): one for one in state["partitions"]}
    assert list(shown) == [("bar", 0), ("foo", 0), ("foo", 1), ("quz", 0)]
    foo = shown["foo", 0]
    assert (foo["batches"], foo["records"], foo["first_offset"], foo["last_offset"]) == (3, 3, 0, 2)
    assert (foo["topic_id"], foo["size_bytes"]) == (uuid_text(FOO.topic_id), len(FOO_LOG))
    assert (shown["bar", 0]["last_offset"], shown["bar", 0]["problem"]) == (None, None)
    assert ok(http.get("/api/v1/console"))["features"] == ["challenge"]
    http.close()
