"""Compaction under live traffic: its duration and memory, and its effect on producers.

    python -m benchmarks.compaction [--records 10000000] [--keys 1000000] [--quick]

A topic is filled with records of 100 bytes with random keys, while compaction is prevented. Then one client writes to
another topic, one record at a time with acks=all at a steady rate: first without compaction, then while the first topic
is compacted. The goal: the 99th percentile at most doubles, and the key map fits `log.cleaner.dedupe.buffer.size`.
"""

import argparse
import json
import random
import shutil
import socket
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from benchmarks.brokers import Broker, sskafka_kind
from sskafka.records.builder import NewRecord, build_batch
from sskafka.wire.codec import encode
from sskafka.wire.header import encode_request_header
from sskafka.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TABLE, TRAFFIC = "table", "traffic"
RECORD_BYTES = 100
RECORD_OVERHEAD_BYTES = 10  # approximate overhead of a record in a batch
BUFFER_BYTES = 128 << 20
PYTHON_BYTES = 40 << 20
"""Memory of the cleaner without its key map: interpreter, modules, buffers."""
PACE_PER_SECOND = 1000
WARMUP_S = 2.0
TIMEOUT_S = 1800.0
PRODUCE, PRODUCE_VERSION = 0, 9
NEVER_DUE = "1.0"


@dataclass(frozen=True, slots=True)
class Result:
    records: int
    keys: int
    fill_seconds: float
    compaction_seconds: float
    bytes_before: int
    bytes_after: int
    cleaner_peak_bytes: int
    p50_alone_ms: float
    p99_alone_ms: float
    p50_during_ms: float
    p99_during_ms: float

    @property
    def is_within_memory(self) -> bool:
        return self.cleaner_peak_bytes <= BUFFER_BYTES + PYTHON_BYTES

    @property
    def is_unnoticed(self) -> bool:
        return self.p99_during_ms <= 2 * self.p99_alone_ms


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compaction", description=__doc__)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--alone-seconds", type=float, default=20.0, help="duration of the run without compaction")
    parser.add_argument("--quick", action="store_true", help="1/50 of the records")
    parser.add_argument("--dir", type=Path, default=Path("build/bench/compaction"))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    records, keys, alone_s = arguments.records, arguments.keys, arguments.alone_seconds
    if arguments.quick:
        records, keys, alone_s = records // 50, keys // 50, alone_s / 5
    shutil.rmtree(arguments.dir, ignore_errors=True)
    settings = {"log.cleaner.backoff.ms": "200", "log.cleaner.dedupe.buffer.size": str(BUFFER_BYTES)}
    with sskafka_kind().running(arguments.dir, settings) as broker:
        result = measure(broker, records, keys, alone_s)
    shutil.rmtree(arguments.dir, ignore_errors=True)
    print(text(result))
    if arguments.json:
        arguments.json.write_text(json.dumps(asdict(result), indent=2))
    return 0


def measure(broker: Broker, records: int, keys: int, alone_s: float) -> Result:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    table = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": NEVER_DUE, "segment.bytes": str(256 << 20)}
    topics = [NewTopic(TABLE, 1, 1, config=table), NewTopic(TRAFFIC, 1, 1)]
    for created in admin.create_topics(topics).values():
        created.result(TIMEOUT_S)
    fill_seconds = fill(broker.bootstrap, records, keys)
    assert broker.data is not None
    directory = broker.data / f"{TABLE}-0"
    before = size_of(directory)
    ends_s = time.monotonic() + WARMUP_S + alone_s
    alone = latencies_ms(broker, lambda: time.monotonic() < ends_s)
    begin_compaction(admin)
    watch = CleanerWatch(broker.pid, broker.data, records)
    during = latencies_ms(broker, watch.is_busy)
    return Result(
        records,
        keys,
        fill_seconds,
        watch.seconds,
        before,
        size_of(directory),
        watch.peak_bytes,
        percentile(alone, 50),
        percentile(alone, 99),
        percentile(during, 50),
        percentile(during, 99),
    )


def fill(bootstrap: str, records: int, keys: int) -> float:
    """Fill the topic and return the seconds that it took."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 20,
            "batch.num.messages": 2000,
            "queue.buffering.max.messages": 500_000,
        }
    )
    choose = random.Random(1).randrange
    value = b"v" * (RECORD_BYTES - RECORD_OVERHEAD_BYTES - 10)
    began = time.monotonic()
    for _ in range(records):
        while True:
            try:
                producer.produce(TABLE, value, b"%010d" % choose(keys), partition=0)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(TIMEOUT_S) == 0
    return time.monotonic() - began


def begin_compaction(admin: AdminClient) -> None:
    """Make the topic due for compaction, and roll its active segment so that all of it can be compacted."""
    changes = {"min.cleanable.dirty.ratio": "0.01", "segment.ms": "1"}
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in changes.items()]
    resource = ConfigResource(ResourceType.TOPIC, TABLE, incremental_configs=entries)
    for changed in admin.incremental_alter_configs([resource]).values():
        changed.result(TIMEOUT_S)


class CleanerWatch:
    """Watches the cleaner from the config change until the checkpoint shows that the whole log is clean."""

    def __init__(self, broker_pid: int, data: Path, records: int) -> None:
        self._pid = broker_pid
        self._checkpoint = data / "cleaner-offset-checkpoint"
        self._records = records
        self._began_s = time.monotonic()
        self._look_again_s = 0.0
        self.peak_bytes = 0
        self.seconds = 0.0

    def is_busy(self) -> bool:
        now_s = time.monotonic()
        if now_s < self._look_again_s:
            return True
        self._look_again_s = now_s + 0.1
        self.seconds = now_s - self._began_s
        self.peak_bytes = max([self.peak_bytes, *map(_peak_bytes, _children(self._pid))])
        return self._cleaned_before() < self._records and self.seconds < TIMEOUT_S

    def _cleaned_before(self) -> int:
        lines = self._checkpoint.read_text().splitlines() if self._checkpoint.exists() else []
        return max((int(line.split()[2]) for line in lines[2:] if line.startswith(f"{TABLE} 0 ")), default=0)


def _children(pid: int) -> list[int]:
    paths = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in paths for child in path.read_text().split()]


def _peak_bytes(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0  # the process has ended
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0)


def latencies_ms(broker: Broker, goes_on: Callable[[], bool]) -> list[float]:
    """Return the latencies of single records, sent one after another at a steady rate, without the warm-up."""
    batch = bytes(build_batch([NewRecord(b"key", b"v" * RECORD_BYTES, (), int(time.time() * 1000))]))
    data = TopicProduceData(name=TRAFFIC, partition_data=[PartitionProduceData(0, batch)])
    body = encode(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data]), PRODUCE_VERSION)
    frame = encode_request_header(PRODUCE, PRODUCE_VERSION, 1, "bench") + body
    request = struct.pack(">i", len(frame)) + frame
    measured: list[float] = []
    with socket.create_connection((broker.host, broker.port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        began_s = next_s = time.monotonic()
        while goes_on():
            next_s = max(next_s + 1 / PACE_PER_SECOND, time.monotonic() - 1)
            time.sleep(max(0.0, next_s - time.monotonic()))
            sent_s = time.monotonic()
            connection.sendall(request)
            _receive(connection)
            if sent_s - began_s > WARMUP_S:
                measured.append((time.monotonic() - sent_s) * 1000)
    return measured


def _receive(connection: socket.socket) -> None:
    (left,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
    while left:
        left -= len(connection.recv(left))


def percentile(values: list[float], percent: int) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) * percent // 100, len(ordered) - 1)] if ordered else 0.0


def size_of(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.glob("*.log"))


def text(result: Result) -> str:
    mb, verdict = 1 << 20, {True: "met", False: "missed"}
    rate = result.records / max(result.compaction_seconds, 0.001)
    left, peak = result.bytes_after / mb, result.cleaner_peak_bytes / mb
    lines = [
        f"{result.records:,} records of {RECORD_BYTES} B, {result.keys:,} keys, filled in {result.fill_seconds:.1f} s",
        f"compaction  {result.compaction_seconds:.1f} s, {rate:,.0f} records/s",
        f"size        {result.bytes_before / mb:,.0f} MB before, {left:,.0f} MB after",
        f"memory      {peak:.0f} MB; map and interpreter, {(BUFFER_BYTES + PYTHON_BYTES) / mb:.0f} MB: "
        + verdict[result.is_within_memory],
        f"alone       p50 {result.p50_alone_ms:.3f} ms  p99 {result.p99_alone_ms:.3f} ms",
        f"during      p50 {result.p50_during_ms:.3f} ms  p99 {result.p99_during_ms:.3f} ms; at most twice: "
        + verdict[result.is_unnoticed],
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
