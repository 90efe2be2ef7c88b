"""One broker for each core beside one Apache Kafka: the same tiny requests over 8 partitions.

    python -m benchmarks.cores [--brokers 2] [--seconds 3] [--rounds 3] [--no-kafka]

Two load generators share the connections and the partitions. With two brokers each of them talks to the broker that
leads its partitions; with one broker, of either kind, both talk to that one. Rounds alternate between the systems.
"""

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.apache_kafka import resolve_kafka_libs
from benchmarks.brokers import (
    HOST,
    STOP_SECONDS_MAX,
    Broker,
    apache_kafka_kind,
    free_ports,
    server_properties,
    sskafka_kind,
)
from benchmarks.generator import run_load
from benchmarks.machine import describe
from benchmarks.processes import read_cpu, read_rss_bytes
from benchmarks.scenarios import BURN_IN, Load
from benchmarks.topics import fresh_topic
from sskafka.model.host_brokers import broker_id_of

SSKAFKA = str(Path(sys.executable).with_name("sskafka"))
CLIENTS = 2
PARTITIONS = 8
LOADS = {"64 connections": (64, 1), "16 connections": (16, 1), "4 x 50 in flight": (4, 50)}
"""Connections and requests in flight on each."""


class System(NamedTuple):
    name: str
    pid: int
    """Of the broker, or of the supervisor of several."""
    leaders: tuple[Broker, ...]
    """The broker that each load generator talks to."""


class Figures(NamedTuple):
    rate: float
    cores: float
    cpu_us: float
    p50_us: float
    p99_us: float


@contextlib.contextmanager
def several_brokers(directory: Path, count: int) -> Iterator[System]:
    """Run `sskafka start --brokers-per-host COUNT`."""
    directory.mkdir(parents=True)
    properties = directory / "server.properties"
    (controller_port,) = free_ports(1)
    properties.write_text(server_properties(directory / "data", 0, controller_port, {}))
    command = [SSKAFKA, "start", str(properties), "--brokers-per-host", str(count)]
    with (directory / "broker.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("READY bootstrap="), (directory / "broker.log").read_text()
        ports = [int(address.rpartition(":")[2]) for address in line.split()[1].split(",")]
        name = f"SSKafka, {count} brokers"
        brokers = [
            Broker(name, HOST, port, process.pid, replicas=(broker_id_of(1, number),))
            for number, port in enumerate(ports)
        ]
        yield System(name, process.pid, tuple(brokers[client % count] for client in range(CLIENTS)))
    finally:
        process.terminate()
        process.communicate(timeout=STOP_SECONDS_MAX)


@contextlib.contextmanager
def running(directory: Path, brokers: int, *, with_kafka: bool) -> Iterator[list[System]]:
    kinds = [sskafka_kind(), *([apache_kafka_kind(resolve_kafka_libs())] if with_kafka else [])]
    with contextlib.ExitStack() as stack:
        systems = [stack.enter_context(several_brokers(directory / "several", brokers))]
        for kind in kinds:
            broker = stack.enter_context(kind.running(directory / kind.name))
            systems.append(System(f"{kind.name}, 1 broker", broker.pid, (broker,) * CLIENTS))
        yield systems


def measure(system: System, connections: int, in_flight: int, seconds: int) -> Figures:
    """Run one load generator against each leader, with a topic of its own, at the same time."""
    arguments: dict[str, int | str] = {
        "--message-bytes": 10,
        "--seconds": seconds,
        "--acks": "1",
        "--connections": connections // CLIENTS,
        "--in-flight": in_flight,
        "--partitions": PARTITIONS // CLIENTS,
    }
    with contextlib.ExitStack() as stack:
        topics = [stack.enter_context(fresh_topic(leader, PARTITIONS // CLIENTS)) for leader in system.leaders]
        before = read_cpu(system.pid).seconds
        with ThreadPoolExecutor(CLIENTS) as clients:
            runs = [
                clients.submit(run_load, Load.REQUESTS, leader, topic, arguments)
                for leader, topic in zip(system.leaders, topics, strict=True)
            ]
            outcomes: list[dict[str, Any]] = [run.result() for run in runs]
        spent = read_cpu(system.pid).seconds - before
    messages = sum(outcome["messages"] for outcome in outcomes)
    return Figures(
        rate=sum(outcome["timed_messages"] / outcome["seconds"] for outcome in outcomes),
        cores=spent / max(outcome["wall_seconds"] for outcome in outcomes),
        cpu_us=spent / messages * 1e6,
        p50_us=statistics.mean(outcome["p50_us"] for outcome in outcomes),
        p99_us=max(outcome["p99_us"] for outcome in outcomes),
    )


def compare(systems: Sequence[System], rounds: int, seconds: int, burn_in: int) -> dict[str, dict[str, Figures]]:
    """Return the median figures of each system for each load, after a burn-in and a warm-up round."""
    found: dict[str, dict[str, Figures]] = {}
    for system in systems:
        measure(system, BURN_IN.connections, BURN_IN.in_flight, burn_in)
    for load, (connections, in_flight) in LOADS.items():
        measured: dict[str, list[Figures]] = {system.name: [] for system in systems}
        for number in range(rounds + 1):
            for system in systems if number % 2 else reversed(systems):
                figures = measure(system, connections, in_flight, seconds)
                print(f"{load}: {system.name}, round {number}: {figures.rate:,.0f}/s", file=sys.stderr, flush=True)
                if number:
                    measured[system.name].append(figures)
        found[load] = {
            name: Figures(*(statistics.median(column) for column in zip(*figures, strict=True)))
            for name, figures in measured.items()
        }
    return found


def table(found: dict[str, dict[str, Figures]]) -> str:
    """Return the figures as Markdown. The ratio is that of the several brokers to the system of the row."""
    lines = [
        "| load | system | requests/s | ratio | broker cores | broker CPU us/request | p50 us | p99 us |",
        "| --- | --- | --: | --: | --: | --: | --: | --: |",
    ]
    for load, systems in found.items():
        several = next(iter(systems.values()))
        for name, one in systems.items():
            ratio = "" if one is several else f"{several.rate / one.rate:.2f}x"
            lines.append(
                f"| {load} | {name} | {one.rate:,.0f} | {ratio} | {one.cores:.2f} | {one.cpu_us:.1f} | "
                f"{one.p50_us:,.0f} | {one.p99_us:,.0f} |"
            )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cores", description=__doc__)
    parser.add_argument("--brokers", type=int, default=2, help="brokers of the machine (2)")
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3, help="counted rounds, after one that is not (3)")
    parser.add_argument("--burn-in", type=int, default=10, metavar="SECONDS", help="load before the first round (10)")
    parser.add_argument("--no-kafka", action="store_true", help="measure only SSKafka")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="sskafka-cores-") as scratch,
        running(Path(scratch), arguments.brokers, with_kafka=not arguments.no_kafka) as systems,
    ):
        found = compare(systems, arguments.rounds, arguments.seconds, arguments.burn_in)
        memory = {system.name: read_rss_bytes(system.pid) / 1e6 for system in systems}
    about = describe(f"{arguments.rounds} rounds of {arguments.seconds} s, {PARTITIONS} partitions", "cores")
    for name, value in about.items():
        print(f"{name}: {value}")
    print(table(found))
    for name, megabytes in memory.items():
        print(f"RSS of {name}: {megabytes:.0f} MB")
    if arguments.json:
        figures = {load: {name: one._asdict() for name, one in systems.items()} for load, systems in found.items()}
        arguments.json.write_text(json.dumps({"about": about, "figures": figures, "rss_mb": memory}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
