"""Measure the CPU time that a broker needs for a tiny request: `python -m benchmarks.request_cpu`.

For machines that do other work at the same time: user and system time of the broker's process, from /proc, divided by
the number of requests. Other processes make a round slower and disturb the caches, but their time is not counted. The
lowest and the median of all rounds are printed. `--pure` measures the Python source although modules are compiled.
"""

import argparse
import os
import statistics
import tempfile
from pathlib import Path

from benchmarks.brokers import Broker, sskafka_kind
from benchmarks.clusters import ClusterKind
from benchmarks.generator import run_load
from benchmarks.processes import STIME, TICKS_PER_SECOND, UTIME
from benchmarks.scenarios import QUICK, REPLICATED_SCENARIOS, SCENARIOS, Scenario
from benchmarks.topics import fresh_topic
from sskafka.compiled import BUILD, PURE_VARIABLE

MEASURED = ("tiny-1", "tiny-16", "tiny-64", "tiny-4x50", "latency")
REPLICATED = ("replicated-tiny-1", "replicated-tiny-16", "replicated-tiny-4x50")


def process_seconds(pids: tuple[int, ...]) -> tuple[float, float]:
    """Return user and system time of the processes, without their children."""
    stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    user, system = (sum(int(fields[position]) for fields in stats) for position in (UTIME, STIME))
    return user / TICKS_PER_SECOND, system / TICKS_PER_SECOND


def measure(scenario: Scenario, broker: Broker, topic: str) -> tuple[float, float]:
    """Return user and system time of one request in microseconds."""
    pids = (broker.pid, *broker.follower_pids)
    before = process_seconds(pids)
    outcome = run_load(scenario.load, broker, topic, scenario.arguments(QUICK))
    after = process_seconds(pids)
    count = outcome["messages"]
    return (after[0] - before[0]) / count * 1e6, (after[1] - before[1]) / count * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pure", action="store_true", help="measure uncompiled modules")
    parser.add_argument("--brokers", type=int, default=1, help="above 1: replicated requests, time of all brokers")
    parser.add_argument("--scenarios", nargs="+", choices=MEASURED + REPLICATED, metavar="KEY")
    options = parser.parse_args()
    if options.pure:
        os.environ[PURE_VARIABLE] = "1"
    kind = sskafka_kind() if options.brokers == 1 else ClusterKind(sskafka_kind(), options.brokers)
    chosen = options.scenarios or (MEASURED if options.brokers == 1 else REPLICATED)
    print(f"build: {'pure Python' if options.pure else BUILD}")
    print("| scenario | lowest us | user | system | median us |\n|---|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory(prefix="sskafka-cpu-") as directory, kind.running(Path(directory)) as broker:
        for scenario in (item for item in (*SCENARIOS, *REPLICATED_SCENARIOS) if item.key in chosen):
            rounds = [_round(scenario, broker) for _ in range(options.rounds + 1)][1:]
            user, system = min(rounds, key=sum)
            median = statistics.median(map(sum, rounds))
            print(f"| {scenario.key} | {user + system:.1f} | {user:.1f} | {system:.1f} | {median:.1f} |", flush=True)


def _round(scenario: Scenario, broker: Broker) -> tuple[float, float]:
    with fresh_topic(broker, scenario.partitions) as topic:
        return measure(scenario, broker, topic)


if __name__ == "__main__":
    main()
