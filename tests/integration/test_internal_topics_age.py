"""Internal topics are compacted like any other: what groups committed last stays, the rest goes."""

from pathlib import Path

from broker_process import StartBroker
from confluent_kafka import Consumer, TopicPartition
from waiting import wait_until
from wire_connection import Connection, values_batch

COMMITS = 600
SETTINGS = {
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
    "offsets.topic.segment.bytes": 20_000,
    "log.cleaner.backoff.ms": 100,
    "log.segment.delete.delay.ms": 0,
}


def consumer(bootstrap: str) -> Consumer:
    return Consumer({"bootstrap.servers": bootstrap, "group.id": "counting", "enable.auto.commit": False})


def committed(bootstrap: str) -> int:
    asking = consumer(bootstrap)
    try:
        (found,) = asking.committed([TopicPartition("numbers", 0)], timeout=20)
        return int(found.offset)
    finally:
        asking.close()


def size_of(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.glob("*.log"))


def test_committed_offsets_are_compacted_and_survive_a_restart(start_broker: StartBroker) -> None:
    broker = start_broker(SETTINGS)
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("numbers")
        connection.produce("numbers", values_batch(b"one"))
    committing = consumer(broker.bootstrap)
    for offset in range(COMMITS):
        committing.commit(offsets=[TopicPartition("numbers", 0, offset)], asynchronous=False)
    committing.close()
    directory = broker.data_directory / "__consumer_offsets-0"
    checkpoint = broker.data_directory / "cleaner-offset-checkpoint"
    wait_until(lambda: checkpoint.exists() and "__consumer_offsets 0 " in checkpoint.read_text(), "it is compacted")
    wait_until(lambda: size_of(directory) < 45_000, "little more than the active segment is left")
    assert committed(broker.bootstrap) == COMMITS - 1
    broker.restart(unclean=True)
    assert committed(broker.bootstrap) == COMMITS - 1
    assert "cannot be compacted" not in broker.log
