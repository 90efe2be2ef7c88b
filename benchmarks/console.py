"""Does a Kafka client feel the console? `python -m benchmarks.console [--rounds 5] [--seconds 5]`.

One broker with its HTTP process, on loopback. The load generator measures a client twice in each round, alone and while
the console is open on every page: the same event streams and polls that its pages make, held by another process. The
order alternates. The page of messages follows the topic that is written to. The goal: the 99th percentile grows by less
than 10%.

    requests   produce requests with one record, one after the other on one connection
    latency    1000 records a second, from produce to consume

Before that, the processor time of the broker and of its HTTP process is measured while nobody produces, without and
with the console: it shows costs that are hidden in the noise of a busy machine.

Browsers draw elsewhere; on a machine with few cores the process that holds the streams competes with the broker for the
CPU, so the growth shown is an upper bound.
"""

import argparse
import http.client
import json
import multiprocessing
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from multiprocessing.synchronize import Event as ProcessEvent
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.brokers import HOST, Broker, free_ports, sskafka_kind
from benchmarks.generator import run_load
from benchmarks.machine import describe
from benchmarks.processes import children_of, read_cpu
from benchmarks.scenarios import Load
from benchmarks.topics import fresh_topic
from sskafka.model.pipeline_events import EVENTS_TOPIC, Event, EventType

GROWTH_MAX = 0.10
GROUP = "shown-group"
PIPELINE = "shown-pipeline"
DEAD_LETTERS = f"{PIPELINE}-dead-letters"
PAGES = (
    *("overview", "topics", "topic", "messages", "groups", "group", "timeline", "transactions", "producers"),
    *("pipelines", "pipeline", "metadata", "log"),
)
"""Each in a tab of its own; some pages of the navigation have more than one."""
ONCE_S = 60.0
"""What a page asks for when it is opened."""
IDLE_S = 10
SETTLE_S = 5
"""What the start and the opening of pages cost is not counted."""
RECORDS = 10_000
START_SECONDS_MAX = 30.0
EVENT_INTERVAL_MS = 2_000


class Request(NamedTuple):
    """A request that an open page holds (`every_s` is None) or makes again and again."""

    page: str
    path: str
    every_s: float | None


def requests_of_pages(topic: str, tailed: str) -> tuple[Request, ...]:
    """Return what all pages ask for while they are open. Each page has the shared stream of events, too."""
    api = "/api/v1"
    stream = f"{api}/events?interval_ms={EVENT_INTERVAL_MS}"
    return (
        *(Request(page, stream, None) for page in PAGES),
        *(Request(page, f"{api}/history/load", ONCE_S) for page in PAGES),
        Request("overview", f"{api}/quorum/elections?limit=5", ONCE_S),
        Request("topics", f"{api}/topics?limit=1000", 4.0),
        Request("topic", f"{api}/topics/{topic}", 4.0),
        Request("topic", f"{api}/topics/{topic}/replicas", 4.0),
        Request("topic", f"{api}/topics/{topic}/consumers", 5.0),
        Request("topic", f"{api}/topics/{topic}/load", 2.0),
        Request("topic", f"{api}/history/topics/{topic}", ONCE_S),
        Request("messages", f"{api}/topics/{tailed}/records/search?follow=true&max_seconds=3600", None),
        Request("groups", f"{api}/groups?limit=1000", 3.0),
        Request("group", f"{api}/groups/{GROUP}", 3.0),
        Request("timeline", f"{api}/groups/{GROUP}/timeline", 3.0),
        Request("transactions", f"{api}/transactions?limit=1000", 2.0),
        Request("producers", f"{api}/topics/{topic}/partitions/0/producers", 2.0),
        Request("pipelines", f"{api}/pipelines", 2.0),
        Request("pipeline", f"{api}/pipelines/{PIPELINE}", 2.0),
        Request("pipeline", f"{api}/topics/{DEAD_LETTERS}/dead-letters", 5.0),
        Request("metadata", f"{api}/metadata?path=/&limit=1000", ONCE_S),
        Request("metadata", f"{api}/metadata/records?limit=100", ONCE_S),
        Request("log", f"{api}/topics/{tailed}/partitions/0/segments", 5.0),
        Request("log", f"{api}/topics/{tailed}/partitions/0/segments/0/batches?limit=200", ONCE_S),
    )


def keep_open(address: str, topic: str, tailed: str, is_open: ProcessEvent, is_closing: ProcessEvent) -> None:
    """Hold the streams and make the polls of all pages in this process, until told to close."""
    requests = requests_of_pages(topic, tailed)
    started = threading.Barrier(len(requests) + 1)
    for request in requests:
        threading.Thread(target=_ask, args=(address, request, started), daemon=True).start()
    started.wait(START_SECONDS_MAX)
    is_open.set()
    is_closing.wait()


def _ask(address: str, request: Request, started: threading.Barrier) -> None:
    connection = http.client.HTTPConnection(address, timeout=60)
    is_first = True
    while True:
        connection.request("GET", request.path)
        response = connection.getresponse()
        assert response.status == 200, f"{request.path}: {response.status} {response.read()!r}"
        if request.every_s is None:
            response.readline()
            started.wait(START_SECONDS_MAX)
            while response.readline():
                pass
            return
        response.read()
        if is_first:
            started.wait(START_SECONDS_MAX)
            is_first = False
        time.sleep(request.every_s)


@contextmanager
def open_console(address: str, topic: str, tailed: str) -> Iterator[None]:
    """Keep the console open on every page for the length of the block."""
    context = multiprocessing.get_context("spawn")
    is_open, is_closing = context.Event(), context.Event()
    process = context.Process(target=keep_open, args=(address, topic, tailed, is_open, is_closing), daemon=True)
    process.start()
    try:
        assert is_open.wait(START_SECONDS_MAX), "the pages are open"
        yield
    finally:
        is_closing.set()
        process.join(5)
        process.kill()


def prepare(broker: Broker, topic: str) -> None:
    """Give the pages something to show: records, and a group that lags behind."""
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(RECORDS):
        producer.produce(topic, json.dumps({"n": number}), partition=0)
        producer.poll(0)
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": GROUP})
    consumer.commit(offsets=[TopicPartition(topic, 0, RECORDS // 2)], asynchronous=False)
    consumer.close()
    prepare_pipeline(broker, producer, topic)


def prepare_pipeline(broker: Broker, producer: Producer, topic: str) -> None:
    """Write the events of a pipeline that has run for ten minutes, and dead letters of it."""
    new = [NewTopic(EVENTS_TOPIC, 1, 1), NewTopic(DEAD_LETTERS, 1, 1)]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for created in admin.create_topics(new).values():
        created.result(30)
    now_ms = int(time.time() * 1000)
    started = Event(PIPELINE, "r1", EventType.STARTED, now_ms - 600_000, {"file": "shown.yaml"})
    events = [started, *(_progress(now_ms - 1_000 * second) for second in range(600, 0, -1))]
    for event in events:
        producer.produce(EVENTS_TOPIC, event.to_json())
    headers: list[tuple[str, str | bytes | None]] = [("dlq.topic", topic.encode()), ("dlq.error", b"not JSON")]
    for _ in range(100):
        producer.produce(DEAD_LETTERS, b"{broken", headers=headers)
    assert producer.flush(30) == 0


def _progress(time_ms: int) -> Event:
    query = {"query": "counts", "batch": 1, "rows_in": 100, "rows_out": 100, "in_per_s": 100.0, "batch_ms": 40}
    return Event(PIPELINE, "r1", EventType.PROGRESS, time_ms, {"queries": [query]})


def print_idle_cost(broker: Broker, address: str, shown: str) -> None:
    """Print the processor time of the broker and of its HTTP process while nobody produces."""
    print(
        f"\n| {IDLE_S} s without load | broker, ms of CPU a second | HTTP process, ms of CPU a second |\n|---|--:|--:|"
    )
    for name in ("no console", "console open on every page"):
        with open_console(address, shown, shown) if name != "no console" else nullcontext():
            time.sleep(SETTLE_S)
            before = _cpu_seconds(broker)
            time.sleep(IDLE_S)
            spent = [after - so_far for so_far, after in zip(before, _cpu_seconds(broker), strict=True)]
        print(f"| {name} | {spent[0] / IDLE_S * 1000:.0f} | {spent[1] / IDLE_S * 1000:.0f} |")


def _cpu_seconds(broker: Broker) -> tuple[float, float]:
    """Return the processor time so far of the broker without its HTTP process, and of that."""
    http = sum(read_cpu(pid).seconds for pid in children_of(broker.pid))
    return read_cpu(broker.pid).seconds - http, http


class Measured(NamedTuple):
    p50_us: float
    p99_us: float


def measure(load: Load, broker: Broker, topic: str, seconds: int) -> Measured:
    arguments: dict[str, int | str] = {"--message-bytes": 100, "--seconds": seconds, "--acks": "1"}
    more: dict[str, int | str] = {"--rate": 1000} if load is Load.LATENCY else {"--connections": 1, "--in-flight": 1}
    outcome = run_load(load, broker, topic, arguments | more)
    return Measured(outcome["p50_us"], outcome["p99_us"])


def compare(load: Load, broker: Broker, address: str, shown: str, rounds: int, seconds: int) -> bool:
    """Print a row: percentiles alone and with the console open. Return whether the goal is met."""
    alone: list[Measured] = []
    watched: list[Measured] = []
    with fresh_topic(broker, 1) as topic:
        measure(load, broker, topic, 1)
        for number in range(rounds):
            for is_watched in (False, True) if number % 2 == 0 else (True, False):
                if is_watched:
                    with open_console(address, shown, topic):
                        watched.append(measure(load, broker, topic, seconds))
                else:
                    alone.append(measure(load, broker, topic, seconds))
    p50, p99 = (statistics.median(getattr(one, name) for one in alone) for name in Measured._fields)
    p50_open, p99_open = (statistics.median(getattr(one, name) for one in watched) for name in Measured._fields)
    growth = float(p99_open / p99 - 1)
    print(
        f"| {load.value} | {p50 / 1000:.2f} | {p99 / 1000:.2f} | {p50_open / 1000:.2f} | {p99_open / 1000:.2f} "
        f"| {growth:+.0%} | {'yes' if growth < GROWTH_MAX else 'no'} |"
    )
    return growth < GROWTH_MAX


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.console", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each row; the medians are shown")
    parser.add_argument("--seconds", type=int, default=5, help="seconds of each measurement")
    options = parser.parse_args()
    shape = f"{options.rounds} rounds of {options.seconds} s"
    for name, value in describe(shape, "python -m benchmarks.console").items():
        print(f"{name}: {value}")
    address = f"{HOST}:{free_ports(1)[0]}"
    with (
        tempfile.TemporaryDirectory(prefix="sskafka-console-") as directory,
        sskafka_kind().running(Path(directory), {"http.listener": address}) as broker,
        fresh_topic(broker, 1) as shown,
    ):
        prepare(broker, shown)
        print_idle_cost(broker, address, shown)
        print("\n| load | p50 ms | p99 ms | p50 ms, console open | p99 ms, console open | growth of p99 | goal |")
        print("|---|--:|--:|--:|--:|--:|---|")
        outcomes = [
            compare(load, broker, address, shown, options.rounds, options.seconds)
            for load in (Load.REQUESTS, Load.LATENCY)
        ]
    print(f"\nGoal: the 99th percentile grows by less than {GROWTH_MAX:.0%}.")
    sys.exit(0 if all(outcomes) else 1)


if __name__ == "__main__":
    main()
