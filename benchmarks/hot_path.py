"""Measure the CPU time of the produce path in one process, without sockets: `python -m benchmarks.hot_path`.

    inspect     walk the records of a batch (records/inspection.py)
    produce     a whole Produce request: decode, check, append, encode the response (handlers/produce.py)

Every figure is the lowest of many rounds, in microseconds of this thread's CPU time: other processes of the machine
make a round longer, never shorter. `SSKAFKA_PURE=1` measures the Python source although the modules are compiled.
"""

import argparse
import random
import tempfile
from collections.abc import Callable, Iterator
from time import thread_time_ns
from typing import Any

import sskafka
from sskafka.compiled import BUILD
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import PartitionRecord, TopicRecord
from sskafka.model.acl import ANONYMOUS
from sskafka.model.settings import Settings
from sskafka.records.batch import HEADER_BYTES
from sskafka.records.builder import NewRecord, build_batch
from sskafka.records.inspection import inspect_records
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.runtime.clock import SystemClock
from sskafka.runtime.timer_wheel import TimerWheel
from sskafka.servers.kafka.authorization import AllowAll
from sskafka.servers.kafka.handlers.produce import ProduceHandler
from sskafka.servers.kafka.request import Request
from sskafka.storage.disk import OsDisk
from sskafka.storage.log_manager import LogManager
from sskafka.storage.meta_properties import MetaProperties
from sskafka.wire.codec import encode
from sskafka.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TOPIC, TOPIC_ID, NODE_ID = "hot", bytes(15) + b"\1", 1
PRODUCE, PRODUCE_VERSION = 0, 9
ROUND_NS = 3_000_000
"""CPU time of a round: short enough that most rounds run without an interruption."""
_sizes = random.Random(7)
BATCHES: dict[str, list[int]] = {
    "1 x 100 B": [100],
    "140 x 100 B": [100] * 140,
    "140 x 50-150 B": [_sizes.randint(50, 150) for _ in range(140)],
    "10,000 x 100 B": [100] * 10_000,
    "6,000 x 50-150 B": [_sizes.randint(50, 150) for _ in range(6_000)],
}


class BenchConnection:
    """As much of a connection as a handler uses that answers at once."""

    authorizer = AllowAll()
    principal = ANONYMOUS
    listener_name = "PLAINTEXT"
    closed = False

    def hold(self) -> None: ...

    def release(self) -> None: ...

    def reserve(self, request: Request) -> Any:
        return BenchSlot()


class BenchSlot:
    """Where the response of a batch goes that was too large to be inspected at once."""

    def complete(self, response: object) -> None: ...

    def fail(self, error: Exception) -> None:
        raise error


def batch_of(sizes: list[int], timestamp_ms: int) -> bytearray:
    return build_batch([NewRecord(None, bytes(size), (), timestamp_ms + n // 100) for n, size in enumerate(sizes)])


def handler_in(directory: str) -> ProduceHandler:
    """Return a handler that appends to one partition in `directory`."""
    clock = SystemClock()
    overrides = {"node.id": str(NODE_ID), "log.dirs": directory, "message.max.bytes": "9999999"}
    settings = Settings.resolve(file={}, environment={}, overrides=overrides)
    logs = LogManager.open(
        OsDisk(), [directory], node_id=NODE_ID, format_as=lambda: MetaProperties("bench", NODE_ID, bytes(16))
    )
    replicas = ReplicaManager(NODE_ID, logs, settings, clock, lambda call: call())
    image, delta = ClusterImage(), MetadataDelta()
    image.replay(TopicRecord(TOPIC, TOPIC_ID), delta)
    image.replay(
        PartitionRecord(0, TOPIC_ID, [NODE_ID], [NODE_ID], leader=NODE_ID, leader_epoch=0, partition_epoch=0), delta
    )
    replicas.apply(delta, image)
    return ProduceHandler(replicas, clock, TimerWheel(clock, lambda _delay, _call: None))


def produce_of(handler: ProduceHandler, batch: bytearray) -> Callable[[], object]:
    partition = PartitionProduceData(index=0, records=bytes(batch))
    message = ProduceRequest(None, 1, 1000, [TopicProduceData(name=TOPIC, partition_data=[partition])])
    original = bytes(encode(message, PRODUCE_VERSION))
    frame = memoryview(bytearray(original))
    start = original.index(bytes(batch))
    connection: Any = BenchConnection()

    def produce() -> object:
        frame[start : start + 16] = original[start : start + 16]  # the append has written its offset there
        return handler.handle(Request(connection, PRODUCE_VERSION, 7, None, frame, 0, 0, PRODUCE))

    return produce


def best_us(call: Callable[[], object], seconds: float) -> float:
    """Return the lowest CPU time of one call."""
    started = thread_time_ns()
    call()
    calls = max(1, ROUND_NS // max(1, thread_time_ns() - started))
    best = float("inf")
    stop = thread_time_ns() + int(seconds * 1e9)
    while thread_time_ns() < stop:
        before = thread_time_ns()
        for _ in range(calls):
            call()
        best = min(best, (thread_time_ns() - before) / calls)
    return best / 1000


def measured(seconds: float) -> Iterator[tuple[str, int, float, float]]:
    """Yield name, number of records, and the microseconds of an inspection and of a produce request."""
    for name, sizes in BATCHES.items():
        batch = batch_of(sizes, SystemClock().now_ms())
        records = bytes(batch[HEADER_BYTES:])
        count = len(sizes)
        inspect = best_us(lambda records=records, count=count: inspect_records(records, count), seconds)  # type: ignore[misc]
        with tempfile.TemporaryDirectory(prefix="sskafka-hot-path-") as directory:
            produce = best_us(produce_of(handler_in(directory), batch), seconds)
        yield name, count, inspect, produce


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="CPU time for each figure (default 1)")
    options = parser.parse_args()
    print(f"sskafka {sskafka.__version__}, {BUILD}, {sskafka.__path__[0]}")
    print("| batch | inspect us | ns a record | produce us | ns a record |\n|---|---|---|---|---|")
    for name, count, inspect, produce in measured(options.seconds):
        print(
            f"| {name} | {inspect:.2f} | {inspect * 1000 / count:.0f} | {produce:.2f} | {produce * 1000 / count:.0f} |"
        )


if __name__ == "__main__":
    main()
