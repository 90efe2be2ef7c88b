"""Run the load generator once against a broker, and measure the CPU time of the broker meanwhile."""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.brokers import Broker
from benchmarks.maven import ROOT
from benchmarks.memory import WarmPages
from benchmarks.processes import cpu_between, read_cpu, read_machine_cpu_seconds
from benchmarks.scenarios import Extent, Load, Scenario

PROGRAM = ROOT / "build" / "bench" / "load"
RUN_SECONDS_MAX = 180


class LoadFailedError(Exception):
    """The load generator failed; the message is its error."""


@dataclass(frozen=True, slots=True)
class Round:
    """One run of one scenario."""

    rate: float
    megabytes_per_second: float
    broker_cpu_per_gigabyte: float
    broker_cpu_us_per_message: float
    broker_cores: float
    broker_busiest_thread: float
    client_cores: float
    client_busiest_thread: float
    follower_cpu_per_gigabyte: float | None
    """Of one follower; None without followers."""
    other_cores: float
    p50_us: float | None
    p99_us: float | None


def run_round(scenario: Scenario, extent: Extent, broker: Broker, topic: str, pages: WarmPages) -> Round:
    # Write out dirty pages of earlier runs first, so that this run does not pay for them.
    os.sync()
    pages.release()
    before, followers_before = read_cpu(broker.pid), _follower_seconds(broker)
    machine_before = read_machine_cpu_seconds()
    outcome = run_load(scenario.load, broker, topic, scenario.arguments(extent), tls=scenario.tls)
    spent, machine_seconds = cpu_between(before, read_cpu(broker.pid)), read_machine_cpu_seconds() - machine_before
    followers_spent = _follower_seconds(broker) - followers_before
    wall, payload_bytes = outcome["wall_seconds"], outcome["messages"] * outcome["message_bytes"]
    rate = outcome["timed_messages"] / outcome["seconds"]
    return Round(
        rate=rate,
        megabytes_per_second=rate * outcome["message_bytes"] / 1e6,
        broker_cpu_per_gigabyte=spent.seconds / payload_bytes * 1e9,
        broker_cpu_us_per_message=spent.seconds / outcome["messages"] * 1e6,
        broker_cores=spent.seconds / wall,
        broker_busiest_thread=spent.busiest_thread_seconds / wall,
        client_cores=outcome["client_cpu_seconds"] / wall,
        client_busiest_thread=outcome["client_busiest_thread_seconds"] / wall,
        follower_cpu_per_gigabyte=_a_follower(broker, followers_spent / payload_bytes * 1e9),
        other_cores=max(0.0, machine_seconds - spent.seconds - followers_spent - outcome["client_cpu_seconds"]) / wall,
        p50_us=outcome.get("p50_us"),
        p99_us=outcome.get("p99_us"),
    )


def _follower_seconds(broker: Broker) -> float:
    return sum(read_cpu(pid).seconds for pid in broker.follower_pids)


def _a_follower(broker: Broker, of_all: float) -> float | None:
    return of_all / len(broker.follower_pids) if broker.follower_pids else None


def run_load(
    load: Load, broker: Broker, topic: str, arguments: Mapping[str, int | str], *, tls: bool = False
) -> dict[str, Any]:
    command = [str(PROGRAM), load.value, "--topic", topic, *_address(load, broker, tls)]
    command += [word for name, value in arguments.items() for word in (name, str(value))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS_MAX, check=False)
    if done.returncode != 0:
        raise LoadFailedError(f"{load.value} against {broker.name}: {done.stderr.strip()}")
    outcome: dict[str, Any] = json.loads(done.stdout)
    return outcome


def _address(load: Load, broker: Broker, tls: bool) -> list[str]:
    port, trusted = broker.port, []
    if tls:
        assert broker.tls is not None, "a scenario with TLS needs a broker with TLS"
        port, trusted = broker.tls.port, ["--ca", str(broker.tls.ca)]
    if load is Load.REQUESTS:
        return ["--host", broker.host, "--port", str(port), *trusted]
    return ["--bootstrap", f"{broker.host}:{port}", *trusted]
