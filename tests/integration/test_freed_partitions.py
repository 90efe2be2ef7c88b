"""The partitions of deleted topics, and their coordinators, are freed without Python's garbage collector.

The collector finds thousands of them at once, in one turn of the event loop: 278 ms of CPU time in a fuzz test. And
objects that were frozen (runtime/garbage_collection.py) would stay until the process has grown by half.
"""

import gc
from collections import Counter
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from waiting import wait_until

import sskafka

PARTITIONS = 5
COORDINATORS = {"CoordinatorContext", "CoordinatorTimers", "GroupCoordinatorShard", "TransactionCoordinatorShard"}
PARTS = {"Partition", "Log", "LogTail", "SyncGate", "Segment", "OpenFiles", "ProducerState", "OsFile"}


@pytest.fixture
def _no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


@pytest.mark.usefixtures("_no_collector")
def test_deleted_partitions_are_no_garbage() -> None:
    with sskafka.Broker() as broker:
        broker.create_topic("deleted", PARTITIONS)
        broker.create_topic("kept", 1)
        broker.produce("deleted", "a")
        assert existing()["Partition"] >= PARTITIONS + 1, "the broker is in this process"
        before = existing()["Partition"]
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.delete_topics(["deleted"])["deleted"].result()
        wait_until(lambda: existing()["Partition"] == before - PARTITIONS, "the partitions are freed")
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found = Counter(type(one).__name__ for one in gc.garbage)
        assert not PARTS & set(found), found


@pytest.mark.usefixtures("_no_collector")
def test_coordinators_of_deleted_partitions_are_no_garbage() -> None:
    """After each change of leaders, the groups of the partitions that were lost stayed in memory for ten minutes."""
    with sskafka.Broker() as broker:
        broker.create_topic("orders", 1)
        broker.produce("orders", "a")
        begin_group_and_transaction(broker.bootstrap_servers)
        assert existing()["GroupCoordinatorShard"] > 0, "the broker is in this process"
        assert existing()["TransactionCoordinatorShard"] > 0
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        deleted = admin.delete_topics(["__consumer_offsets", "__transaction_state"])
        for future in deleted.values():
            future.result()
        wait_until(lambda: not COORDINATORS & set(existing()), "the coordinators are freed")


def begin_group_and_transaction(bootstrap_servers: str) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    wait_until(lambda: consumer.poll(0.1) is not None, "the group reads a record")
    consumer.commit(asynchronous=False)
    consumer.close()
    producer = Producer({"bootstrap.servers": bootstrap_servers, "transactional.id": "t"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("orders", b"b")
    producer.commit_transaction()


def existing() -> Counter[str]:
    return Counter(type(one).__name__ for one in gc.get_objects())
