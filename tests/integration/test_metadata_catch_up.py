"""A broker that starts knows the cluster as it once was before it knows it as it is: no coordinator may act on that."""

from broker_process import StartBroker
from confluent_kafka import Consumer, TopicPartition
from wire_connection import Connection, values_batch

from sskafka.wire.messages.delete_topics import DeleteTopicsRequest

SETTINGS = {"offsets.topic.num.partitions": 1, "offsets.topic.replication.factor": 1}
EVERY_RECORD = {"metadata.log.max.record.bytes.between.snapshots": 1}


def consumer(bootstrap: str) -> Consumer:
    return Consumer({"bootstrap.servers": bootstrap, "group.id": "reading", "enable.auto.commit": False})


def commit(bootstrap: str, topic: str, offset: int) -> None:
    committing = consumer(bootstrap)
    committing.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    committing.close()


def committed(bootstrap: str, topic: str) -> int:
    asking = consumer(bootstrap)
    try:
        return int(asking.committed([TopicPartition(topic, 0)], timeout=20)[0].offset)
    finally:
        asking.close()


def test_offsets_of_a_topic_made_anew_survive_restarts(start_broker: StartBroker) -> None:
    """The snapshot has the first topic of that name; its deletion is replayed at every start that follows."""
    broker = start_broker({**SETTINGS, **EVERY_RECORD})
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("again")
    commit(broker.bootstrap, "again", 1)
    assert list((broker.data_directory / "__cluster_metadata-0").glob("*.checkpoint"))
    broker.settings = dict(SETTINGS)
    broker.restart(unclean=True)
    with Connection(broker.bootstrap) as connection:
        connection.call(DeleteTopicsRequest(topic_names=["again"], timeout_ms=10_000), version=5)
        connection.create_topic("again")
        connection.produce("again", values_batch(b"one", b"two"))
    commit(broker.bootstrap, "again", 2)
    for unclean in (False, True, True):
        broker.restart(unclean=unclean)
        assert committed(broker.bootstrap, "again") == 2
