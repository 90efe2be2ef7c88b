"""The partitions of deleted topics are freed without Python's garbage collector.

The collector finds thousands of them at once, in one turn of the event loop: 278 ms of CPU time in a fuzz test. And
objects that were frozen (runtime/garbage_collection.py) would stay until the process has grown by half.
"""

import gc
from collections import Counter
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient
from waiting import wait_until

import sskafka

PARTITIONS = 5
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


def existing() -> Counter[str]:
    return Counter(type(one).__name__ for one in gc.get_objects())
