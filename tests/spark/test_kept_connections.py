"""What a process knows of a cluster from its last task may be wrong when the next one comes."""

from collections.abc import Callable

import pyarrow as pa
import pytest
from cluster_processes import ClusterProcesses
from waiting import wait_until

from sskafka.client.admin import Admin, NewTopic
from sskafka.client.errors import UnknownTopicError
from sskafka.pipelines.connector.options import BOOTSTRAP, sink_options, source_options
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.connector.sink import _write
from sskafka.pipelines.connector.source import BatchReader


def read(bootstrap: str, topic: str) -> list[bytes]:
    """As a task does, in this process."""
    reader = BatchReader(source_options({BOOTSTRAP: bootstrap, "subscribe": topic}, streaming=False))
    return [
        value
        for partition in reader.partitions()
        for batch in reader.read(partition)
        for value in batch.column("value").to_pylist()
    ]


def write(bootstrap: str, topic: str, value: bytes) -> None:
    options = sink_options({BOOTSTRAP: bootstrap, "topic": topic, "deliveryGuarantee": "at-least-once"})
    _write(options, None, iter([pa.RecordBatch.from_pydict({"value": [value]})]), 0)


def test_a_topic_that_was_deleted_and_created_again(
    bootstrap: str, session: ClusterSession, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(1)
    write(bootstrap, topic, b"old")
    assert read(bootstrap, topic) == [b"old"]
    admin = Admin(session.cluster)
    session.run(admin.delete_topics([topic]))
    wait_until(lambda: is_gone(session, topic), "the topic is gone")
    session.run(admin.create_topics([NewTopic(topic, 1)]))
    write(bootstrap, topic, b"new")
    assert read(bootstrap, topic) == [b"new"]


def is_gone(session: ClusterSession, topic: str) -> bool:
    session.cluster.forget(topic)
    try:
        session.run(session.cluster.topic(topic))
    except UnknownTopicError:
        return True
    return False


def test_a_broker_that_was_restarted(
    brokers: ClusterProcesses | None, bootstrap: str, session: ClusterSession, new_topic: Callable[..., str]
) -> None:
    if brokers is None:
        pytest.skip("the brokers are not ours to restart")
    topic = new_topic(3)
    write(bootstrap, topic, b"before")
    assert read(bootstrap, topic) == [b"before"]
    leader = session.run(session.cluster.topic(topic)).partitions[0].leader
    brokers.stop_broker(leader)
    brokers.start_broker(leader)
    write(bootstrap, topic, b"after")
    assert sorted(read(bootstrap, topic)) == [b"after", b"before"]
