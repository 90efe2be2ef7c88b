"""A restart, clean or by kill -9, keeps all that was acknowledged: records, offsets, sequences, topics, settings."""

import threading
from typing import Any

import pytest
from broker_process import BrokerProcess, StartBroker
from clients import CLIENTS, Message, confluent_consumer, confluent_producer, confluent_send, confluent_take
from confluent_kafka import TopicPartition
from wire_connection import Connection, values_batch, values_in

from sskafka.records.compression import Compression
from sskafka.wire.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from sskafka.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from sskafka.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from sskafka.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from sskafka.wire.messages.describe_cluster import DescribeClusterRequest
from sskafka.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from sskafka.wire.messages.init_producer_id import InitProducerIdRequest
from sskafka.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from sskafka.wire.messages.metadata import MetadataRequest

TOPIC_RESOURCE = 2
EARLIEST, LATEST = -2, -1
START_LIMIT_S = 10  # far above the half second that is promised: test machines are busy

pytestmark = pytest.mark.parametrize("unclean", [False, True], ids=["clean", "kill -9"])


def list_offset(connection: Connection, topic: str, timestamp: int) -> int:
    topics = [ListOffsetsTopic(topic, [ListOffsetsPartition(0, timestamp=timestamp)])]
    found = connection.call(ListOffsetsRequest(replica_id=-1, topics=topics), version=7).topics[0].partitions[0]
    assert found.error_code == 0
    return int(found.offset)


def topic_settings(connection: Connection, topic: str) -> dict[str, str]:
    request = DescribeConfigsRequest(resources=[DescribeConfigsResource(TOPIC_RESOURCE, topic, None)])
    (result,) = connection.call(request, version=4).results
    return {config.name: config.value for config in result.configs}


def sequenced(producer: Any, sequence: int, *values: bytes) -> bytearray:
    return values_batch(
        *values, producer_id=producer.producer_id, producer_epoch=producer.producer_epoch, base_sequence=sequence
    )


def test_records_and_offsets(start_broker: StartBroker, unclean: bool) -> None:
    broker = start_broker({"log.segment.bytes": 100_000, "log.index.interval.bytes": 1000})
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("kept", 2)
    messages = [Message(b"%05d" % n * 20, key=b"%d" % n, timestamp=1_700_000_000_000 + n) for n in range(5000)]
    confluent_send(confluent_producer(broker.bootstrap, batch_num_messages=100), "kept", messages)
    before = CLIENTS[0].read(broker.bootstrap, "kept", 0, 5000)
    assert len(list((broker.data_directory / "kept-0").glob("*.log"))) > 2
    broker.restart(unclean=unclean)
    assert broker.start_seconds < START_LIMIT_S
    assert CLIENTS[0].read(broker.bootstrap, "kept", 0, 5000) == before
    with Connection(broker.bootstrap) as connection:
        assert list_offset(connection, "kept", LATEST) == 5000
        assert list_offset(connection, "kept", 1_700_000_004_321) == 4321
        assert connection.produce("kept", values_batch(b"next")).base_offset == 5000
        assert connection.produce("kept", values_batch(b"first"), partition=1).base_offset == 0


def test_restarting_again_and_again(start_broker: StartBroker, unclean: bool) -> None:
    broker = start_broker()
    with Connection(broker.bootstrap) as connection:
        topic_id = connection.create_topic("counted")
    for round_ in range(4):
        with Connection(broker.bootstrap) as connection:
            assert connection.topic_metadata("counted").topic_id == topic_id
            assert connection.topic_metadata("counted").partitions[0].error_code == 0
            assert connection.produce("counted", values_batch(b"%d" % round_)).base_offset == round_
        broker.restart(unclean=unclean)
    with Connection(broker.bootstrap) as connection:
        assert values_in(connection.fetch("counted")) == [b"0", b"1", b"2", b"3"]


def test_producer_sequences(start_broker: StartBroker, unclean: bool) -> None:
    broker = start_broker()
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("sequences")
        producer = connection.call(InitProducerIdRequest(transactional_id=None), version=4)
        for n in range(6):
            batch = sequenced(producer, 2 * n, b"%d" % n, b"%d again" % n)
            assert connection.produce("sequences", batch).base_offset == 2 * n
    broker.restart(unclean=unclean)
    with Connection(broker.bootstrap) as connection:
        for n in (5, 3):  # retries of what was acknowledged before
            repeated = connection.produce("sequences", sequenced(producer, 2 * n, b"%d" % n, b"%d again" % n))
            assert (repeated.error_code, repeated.base_offset) == (0, 2 * n)
        assert connection.produce("sequences", sequenced(producer, 99, b"gap")).error_code == 45
        assert connection.produce("sequences", sequenced(producer, 12, b"next")).base_offset == 12
        assert connection.fetch("sequences").high_watermark == 13
        another = connection.call(InitProducerIdRequest(transactional_id=None), version=4)
        assert another.producer_id != producer.producer_id


def test_topics_partitions_and_settings(start_broker: StartBroker, unclean: bool) -> None:
    broker = start_broker()
    with Connection(broker.bootstrap) as connection:
        topic_id = connection.create_topic("grown", 2, retention_ms=86_400_000, segment_bytes=1_000_000)
        growth = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic("grown", count=5, assignments=None)], timeout_ms=5000
        )
        assert connection.call(growth, version=3).results[0].error_code == 0
        changes = [AlterableConfig("max.message.bytes", "4321"), AlterableConfig("retention.ms", "86400000")]
        resource = AlterConfigsResource(TOPIC_RESOURCE, "grown", changes)
        assert connection.call(AlterConfigsRequest(resources=[resource]), version=2).responses[0].error_code == 0
        connection.create_topic("dropped")
        connection.produce("dropped", values_batch(b"gone"))
        deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name="dropped")], timeout_ms=5000)
        assert connection.call(deletion, version=6).responses[0].error_code == 0
        cluster_id = connection.call(DescribeClusterRequest(), version=1).cluster_id
    broker.restart(unclean=unclean)
    with Connection(broker.bootstrap) as connection:
        names = {topic.name for topic in connection.call(MetadataRequest(topics=None), version=12).topics}
        assert names == {"grown"}
        described = connection.topic_metadata("grown")
        assert (described.topic_id, len(described.partitions)) == (topic_id, 5)
        settings = topic_settings(connection, "grown")
        assert (settings["max.message.bytes"], settings["retention.ms"]) == ("4321", "86400000")
        assert settings["segment.bytes"] == "1073741824"
        assert connection.produce("grown", values_batch(bytes(5000))).error_code == 10
        assert connection.call(DescribeClusterRequest(), version=1).cluster_id == cluster_id
        connection.create_topic("dropped")
        assert values_in(connection.fetch("dropped")) == []


def test_log_start_offset(start_broker: StartBroker, unclean: bool) -> None:
    broker = start_broker()
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("trimmed")
        connection.produce("trimmed", values_batch(*(b"%d" % n for n in range(20))))
        topics = [DeleteRecordsTopic("trimmed", [DeleteRecordsPartition(0, offset=13)])]
        request = DeleteRecordsRequest(topics=topics, timeout_ms=5000)
        assert connection.call(request, version=2).topics[0].partitions[0].low_watermark == 13
    broker.restart(unclean=unclean)
    with Connection(broker.bootstrap) as connection:
        assert (list_offset(connection, "trimmed", EARLIEST), list_offset(connection, "trimmed", LATEST)) == (13, 20)
        assert connection.fetch("trimmed", 12).error_code == 1
        assert connection.fetch("trimmed", 13).log_start_offset == 13


def test_flush_before_every_answer(start_broker: StartBroker, unclean: bool) -> None:
    broker = start_broker()
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("flushed", flush_messages=1)
        for n in range(20):
            assert connection.produce("flushed", values_batch(b"%d" % n)).base_offset == n
        # Many at once share their syncs.
        confluent_send(confluent_producer(broker.bootstrap), "flushed", [Message(b"m")] * 500)
    broker.restart(unclean=unclean)
    with Connection(broker.bootstrap) as connection:
        assert list_offset(connection, "flushed", LATEST) == 520


def test_acknowledged_under_load(start_broker: StartBroker, unclean: bool) -> None:
    """The broker goes down in the middle of a stream; each acknowledged record is there, once, in order."""
    broker = start_broker()
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("load")
    acknowledged: list[int] = []
    enough = threading.Event()

    def keep_producing() -> None:
        with Connection(broker.bootstrap) as connection:
            n = 0
            codecs = list(Compression)
            while True:
                try:
                    answer = connection.produce("load", values_batch(b"%d" % n, compression=codecs[n % len(codecs)]))
                except (AssertionError, OSError):
                    return  # the broker is gone
                if answer.error_code != 0:
                    return
                acknowledged.append(answer.base_offset)
                n += 1
                if n == 300:
                    enough.set()

    producer = threading.Thread(target=keep_producing)
    producer.start()
    try:
        assert enough.wait(30)
    finally:
        broker.kill() if unclean else broker.stop()
        producer.join()
    broker.start()
    assert acknowledged == list(range(len(acknowledged)))
    consumer = confluent_consumer(broker.bootstrap)
    try:
        consumer.assign([TopicPartition("load", 0, 0)])
        received = confluent_take(consumer, len(acknowledged))
    finally:
        consumer.close()
    assert [message.value for message in received] == [b"%d" % n for n in range(len(acknowledged))]


def test_clients_carry_on_when_the_port_stays(start_broker: StartBroker, unclean: bool) -> None:
    broker = start_broker()
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("patient")
    producer = confluent_producer(broker.bootstrap, enable_idempotence=True, reconnect_backoff_max_ms=200)
    confluent_send(producer, "patient", [Message(b"before")])
    broker.settings["listeners"] = f"PLAINTEXT://{broker.bootstrap}"
    broker.restart(unclean=unclean)
    (report,) = confluent_send(producer, "patient", [Message(b"after")])
    assert report.offset() == 1
    assert_no_traceback(broker)


def assert_no_traceback(broker: BrokerProcess) -> None:
    assert "Traceback" not in broker.log, broker.log
