"""Latency of a pipeline: from the producer of a record to a read_committed consumer.

    python -m benchmarks.spark_latency [--rounds 3] [--seconds 30] [--rate 20] [--burst 500000] [--before DIR]

Three jobs copy a topic to another topic with the same trigger, on the same brokers, one at a time, round by round:

    sskafka        a pipeline with SSKafka's connector, exactly-once
    kafka          the same pipeline file with Spark's own connector, which is at-least-once
    kafka, plain   Spark's own connector in a job without SSKafka, in a session with Spark's defaults
    before         with --before: the pipeline with the connector of another checkout, as it is in DIR/src, exactly-once

Each round starts a new job and measures
- start: from the start of the job's process to its first record at the consumer,
- latency: of records that are sent at a steady rate, after a warm-up,
- rows/s: of a burst, from the first record sent to the last record received.

Every record must arrive: exactly once from the exactly-once job, at least once from the others.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from confluent_kafka import Consumer, Message, Producer, TopicPartition

from benchmarks.brokers import Broker, BrokerKind, sskafka_kind
from benchmarks.clusters import ClusterKind
from benchmarks.machine import describe
from benchmarks.spark_kafka import resolve_spark_kafka_jars, spark_jars
from sskafka.client.admin import Admin, NewTopic
from sskafka.client.config import ConnectionConfig
from sskafka.model.ids import TopicPartition as Partition
from sskafka.pipelines.connector.delivery import deliver
from sskafka.pipelines.connector.encode import Row, framed, payloads
from sskafka.pipelines.connector.planning import ClusterSession

OURS, SPARKS_OWN, PLAIN, BEFORE = "sskafka", "kafka", "kafka, plain", "before"
EXACTLY_ONCE = (OURS, BEFORE)
GOAL_OF_PLAIN = 0.4
PARTITIONS = 3
START_S_MAX = 180.0
ARRIVE_S_MAX = 120.0
STOP_S_MAX = 90.0
POLL_S_MAX = 0.05
BURST_BATCH_RECORDS = 5_000
BURST_VALUE_BYTES = 100
PIPELINE = """\
name: latency
connector: {connector}
sources:
  records: {{topic: {source}, format: raw}}
transform:
  sql: select value from records
sinks:
  - topic: {{topic: {target}, value: value, guarantee: {guarantee}, partitions: {partitions}}}
trigger: {trigger}
"""


@dataclass
class Round:
    """Measurements of one run of one job."""

    start_s: float
    latencies_ms: list[float] = field(default_factory=list)
    rows_a_second: float = 0.0
    duplicates: int = 0


class Figures(NamedTuple):
    """Aggregates over all rounds of a job."""

    latency_p50_ms: float
    latency_p90_ms: float
    latency_p99_ms: float
    rows_a_second: float
    start_s: float
    duplicates: int

    @classmethod
    def of(cls, rounds: Sequence[Round]) -> "Figures":
        latencies = [latency for one in rounds for latency in one.latencies_ms]
        hundredths = quantiles(latencies, n=100, method="inclusive")
        return cls(
            median(latencies),
            hundredths[89],
            hundredths[98],
            median(one.rows_a_second for one in rounds),
            median(one.start_s for one in rounds),
            sum(one.duplicates for one in rounds),
        )


class Received:
    """The numbered records that a read_committed consumer has received, and the time when each first arrived."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.at: dict[int, float] = {}
        self.duplicates = 0
        self.unnumbered = 0
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "latency",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 500,
            }
        )
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])

    def wait_for(self, is_enough: Callable[[], bool], timeout_s: float, alive: Callable[[], bool]) -> None:
        deadline = time.monotonic() + timeout_s
        while not is_enough():
            if time.monotonic() >= deadline or not alive():
                raise TimeoutError(f"{len(self.at)} numbered and {self.unnumbered} other records came, then no more")
            self._take(self._arrived())

    def _arrived(self) -> list[Message]:
        """Return the next record as soon as it arrives, with those that are already behind it.

        `consume` with a time-out returns only when the time is over, which would add up to that time to a latency."""
        first = self._consumer.poll(POLL_S_MAX)
        return [] if first is None else [first, *self._consumer.consume(10_000, 0)]

    def _take(self, messages: Sequence[Message]) -> None:
        now = time.monotonic()
        for message in messages:
            value = message.value()
            if value is None:
                raise RuntimeError(f"the consumer failed: {message.error()}")
            if not value.startswith(b"#"):
                self.unnumbered += 1
            elif (number := int(value[1:])) in self.at:
                self.duplicates += 1
            else:
                self.at[number] = now

    def close(self) -> None:
        self._consumer.close()


class Sender:
    """Sends numbered records and records when each was sent."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.at: list[float] = []
        self._topic = topic
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": "all"})

    def send(self) -> None:
        number = len(self.at)
        self.at.append(time.monotonic())
        self._producer.produce(self._topic, b"#%d" % number, partition=number % PARTITIONS)
        self._producer.poll(0)

    def flush(self) -> None:
        left = self._producer.flush(ARRIVE_S_MAX)
        if left:
            raise TimeoutError(f"{left} records were not acknowledged")

    def send_steadily(self, rate: float, seconds: float) -> threading.Thread:
        """Send records in a background thread, which ends by itself."""

        def work() -> None:
            began = time.monotonic()
            for count in range(round(rate * seconds)):
                time.sleep(max(0.0, began + count / rate - time.monotonic()))
                self.send()
            self.flush()

        thread = threading.Thread(target=work, name="sender")
        thread.start()
        return thread


def send_burst(bootstrap: str, topic: str, records: int) -> int:
    """Send about this many records without numbers, in large batches; return how many were sent."""
    (payload,) = payloads([Row(None, b"x" * BURST_VALUE_BYTES)] * BURST_BATCH_RECORDS, 1 << 30)
    turns = max(1, records // (BURST_BATCH_RECORDS * PARTITIONS))
    with ClusterSession(bootstrap, ConnectionConfig()) as session:
        batch = framed(payload, timestamp=session.cluster.clock.now_ms())
        for _ in range(turns):
            everywhere = {Partition(topic, number): batch for number in range(PARTITIONS)}
            session.run(deliver(session.cluster, everywhere, None))
    return turns * BURST_BATCH_RECORDS * PARTITIONS


def command_of(
    job: str, bootstrap: str, source: str, target: str, directory: Path, options: argparse.Namespace
) -> list[str]:
    jars = spark_jars(resolve_spark_kafka_jars())
    if job == PLAIN:
        arguments = [bootstrap, source, target, str(directory / "checkpoint"), options.trigger, jars]
        return [sys.executable, "-m", "benchmarks.spark_job", *arguments]
    file = directory / "latency.yaml"
    guarantee = "exactly-once" if job in EXACTLY_ONCE else "at-least-once"
    file.write_text(
        PIPELINE.format(
            connector=OURS if job in EXACTLY_ONCE else job,
            source=source,
            target=target,
            guarantee=guarantee,
            partitions=PARTITIONS,
            trigger=options.trigger,
        )
    )
    program = str(Path(sys.executable).with_name("sskafka"))
    return [program, "pipeline", "run", str(file), "--bootstrap-server", bootstrap, "--conf", f"spark.jars={jars}"]


def environment_of(job: str, options: argparse.Namespace) -> dict[str, str]:
    """Return the environment of the job's process; the other checkout is found on Python's path."""
    if job != BEFORE:
        return dict(os.environ)
    return {**os.environ, "PYTHONPATH": str(Path(options.before, "src").resolve())}


@contextlib.contextmanager
def running(command: Sequence[str], log: Path, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run the job as a process, which is ended with SIGTERM."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True, env=environment
        )
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_S_MAX)
    except BaseException:
        print(log.read_text()[-4000:], file=sys.stderr)
        raise
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # remaining processes of Java and its workers
        process.wait()


def create_topics(broker: Broker, names: Sequence[str]) -> None:
    with ClusterSession(broker.bootstrap, ConnectionConfig()) as session:
        new = [NewTopic(name, PARTITIONS, len(broker.replicas)) for name in names]
        for name, outcome in session.run(Admin(session.cluster).create_topics(new)).items():
            if isinstance(outcome, Exception):
                raise RuntimeError(f"{name} was not created: {outcome}")


def measured(job: str, number: int, broker: Broker, options: argparse.Namespace) -> Round:
    source, target = (f"{which}-{job.replace(', ', '-')}-{number}" for which in ("in", "out"))
    create_topics(broker, [source, target])
    sender = Sender(broker.bootstrap, source)
    sender.send()
    sender.flush()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        command = command_of(job, broker.bootstrap, source, target, directory, options)
        received = Received(broker.bootstrap, target)
        began = time.monotonic()
        with running(command, directory / "job.log", environment_of(job, options)) as process:

            def wait_for(is_enough: Callable[[], bool], timeout_s: float) -> None:
                received.wait_for(is_enough, timeout_s, lambda: process.poll() is None)

            wait_for(lambda: 0 in received.at, START_S_MAX)
            result = Round(start_s=received.at[0] - began)
            for seconds in (options.warm_up, options.seconds):
                first = len(sender.at)
                thread = sender.send_steadily(options.rate, seconds)
                wait_for(
                    lambda: not thread.is_alive() and len(received.at) == len(sender.at),  # noqa: B023  called in the loop
                    seconds + ARRIVE_S_MAX,
                )
            result.latencies_ms = [(received.at[one] - sender.at[one]) * 1000 for one in range(first, len(sender.at))]
            burst_began = time.monotonic()
            sent = send_burst(broker.bootstrap, source, options.burst)
            wait_for(lambda: received.unnumbered >= sent, ARRIVE_S_MAX)
            result.rows_a_second = sent / (time.monotonic() - burst_began)
            result.duplicates = received.duplicates + received.unnumbered - sent
        received.close()
    if job in EXACTLY_ONCE and result.duplicates:
        raise RuntimeError(f"{result.duplicates} records came twice through a job that is exactly once")
    return result


def lines(figures: Mapping[str, Figures]) -> Iterator[str]:
    """Yield the table, and the ratios of SSKafka's job to each of the others."""
    yield "| job | latency p50 ms | p90 | p99 | rows/s | start to first row s | duplicates |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for job, one in figures.items():
        yield (
            f"| {job} | {one.latency_p50_ms:,.0f} | {one.latency_p90_ms:,.0f} | {one.latency_p99_ms:,.0f} | "
            f"{one.rows_a_second:,.0f} | {one.start_s:.1f} | {one.duplicates} |"
        )
    ours = figures[OURS]
    for job, other in figures.items():
        if job != OURS:
            ratio, p99 = ours.latency_p50_ms / other.latency_p50_ms, ours.latency_p99_ms / other.latency_p99_ms
            rows, start = ours.rows_a_second / other.rows_a_second, ours.start_s / other.start_s
            yield (
                f"{OURS} compared with {job!r}: median latency {ratio:.2f}x, p99 {p99:.2f}x, rows/s {rows:.2f}x, "
                f"start {start:.2f}x"
            )
            if job == PLAIN:
                yield f"goal: median latency at most {GOAL_OF_PLAIN}x: {'yes' if ratio <= GOAL_OF_PLAIN else 'no'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--warm-up", type=float, default=15, help="seconds of warm-up that do not count")
    parser.add_argument("--rate", type=float, default=20, help="records per second")
    parser.add_argument("--burst", type=int, default=500_000, help="records")
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--trigger", default="0 seconds")
    parser.add_argument("--jobs", nargs="+", choices=[OURS, SPARKS_OWN, PLAIN], default=[OURS, SPARKS_OWN, PLAIN])
    parser.add_argument("--before", metavar="DIR", default="", help="another checkout, whose pipeline is measured too")
    options = parser.parse_args()
    if options.before:
        options.jobs = [*options.jobs, BEFORE]
    kind: BrokerKind = sskafka_kind() if options.brokers == 1 else ClusterKind(sskafka_kind(), options.brokers)
    rounds: dict[str, list[Round]] = {job: [] for job in options.jobs}
    with tempfile.TemporaryDirectory() as directory, kind.running(Path(directory)) as broker:
        for number in range(options.rounds):
            for job in options.jobs:
                one = measured(job, number, broker, options)
                rounds[job].append(one)
                print(f"{job:14} {median(one.latencies_ms):8,.0f} ms {one.rows_a_second:10,.0f} rows/s", flush=True)
    about = describe(f"{options.rounds} rounds", f"python -m benchmarks.spark_latency {' '.join(sys.argv[1:])}")
    print("\n".join(f"{name}: {value}" for name, value in about.items()))
    figures = {job: Figures.of(some) for job, some in rounds.items()}
    print("\n".join(lines(figures) if OURS in figures else map(str, figures.items())))


if __name__ == "__main__":
    main()
