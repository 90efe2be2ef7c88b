"""Growth: what partitions, connections, large logs and many topics cost one broker, and whether cost grows with work.

    python -m benchmarks.growth partitions [--sizes 10 100 1000 10000] [--kafka]
    python -m benchmarks.growth connections [--sizes 10 1000 10000] [--kafka]
    python -m benchmarks.growth logs [--gb 1 10] [--kafka]
    python -m benchmarks.growth fetch [--sizes 1 10 100] [--kafka]
    python -m benchmarks.growth all

Each prints a table in Markdown. `--kafka` measures Apache Kafka, too, up to 1,000 partitions and connections and 10 GB.
CPU time is that of the broker's processes; seconds of wall-clock time are those of this machine, whatever else it does.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.apache_kafka import resolve_kafka_libs
from benchmarks.brokers import BrokerKind, apache_kafka_kind, sskafka_kind
from benchmarks.growing import connections, fetches, logs, partitions
from benchmarks.growing.figures import READY_SECONDS_MAX, Row
from benchmarks.machine import describe

KAFKA_MAX = 1000
"""Partitions and connections up to which Apache Kafka is measured."""
FREE_BYTES_PER_BYTE = 1.2
"""Free space that a log needs before it is written, to its own size."""


class Growth(NamedTuple):
    title: str
    unit: str
    sizes: tuple[int, ...]
    kafka_max: int
    measure: Callable[[BrokerKind, Path, int], Row]


GROWTHS = {
    "partitions": Growth("Partitions", "partitions", (10, 100, 1000, 10_000), KAFKA_MAX, partitions.measure),
    "connections": Growth("Connections", "connections", (10, 1000, 10_000), KAFKA_MAX, connections.measure),
    "logs": Growth("Logs", "GB", (1, 10), 10, logs.measure),
    "fetch": Growth("Topics in a fetch", "topics", (1, 10, 100), KAFKA_MAX, fetches.measure),
}


def rows_of(growth: Growth, kinds: Sequence[BrokerKind], sizes: Sequence[int]) -> Iterator[tuple[str, int, Row]]:
    for kind in kinds:
        for size in sizes:
            if kind.name != "SSKafka" and size > growth.kafka_max:
                continue
            with tempfile.TemporaryDirectory(prefix="sskafka-growth-") as directory:
                _check_room(Path(directory), size if growth.unit == "GB" else 1)
                print(f"{growth.title}: {kind.name}, {size:,}", file=sys.stderr, flush=True)
                yield kind.name, size, growth.measure(kind, Path(directory), size)


def _check_room(directory: Path, gigabytes: int) -> None:
    free = shutil.disk_usage(directory).free
    if free < gigabytes * 1e9 * FREE_BYTES_PER_BYTE:
        raise SystemExit(
            f"{directory} has {free / 1e9:.0f} GB left, too little for a log of {gigabytes} GB: set TMPDIR"
        )


def table(growth: Growth, rows: Sequence[tuple[str, int, Row]]) -> str:
    names = list(dict.fromkeys(name for _, _, row in rows for name in row))
    lines = [f"| broker | {growth.unit} | {' | '.join(names)} |", f"| --- | --: |{' --: |' * len(names)}"]
    for broker, size, row in rows:
        cells = (row.get(name, "") for name in names)
        lines.append(f"| {broker} | {size:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("what", choices=[*GROWTHS, "all"])
    parser.add_argument("--sizes", type=int, nargs="+", help="instead of the usual ones")
    parser.add_argument("--gb", type=int, nargs="+", help="sizes of logs (1 10); 50 needs 60 GB of disk")
    parser.add_argument("--kafka", action="store_true", help="measure Apache Kafka, too")
    arguments = parser.parse_args()
    if arguments.what == "all" and arguments.sizes:
        parser.error("--sizes is for one kind of growth")
    kinds = [sskafka_kind(), *([apache_kafka_kind(resolve_kafka_libs())] if arguments.kafka else [])]
    for kind in kinds:
        kind.ready_seconds_max = READY_SECONDS_MAX
    for name, value in describe("growth", arguments.what).items():
        print(f"{name}: {value}")
    for key in GROWTHS if arguments.what == "all" else [arguments.what]:
        growth = GROWTHS[key]
        sizes = (arguments.gb if key == "logs" else arguments.sizes) or growth.sizes
        print(f"\n{growth.title}: python -m benchmarks.growth {key}\n", flush=True)
        print(table(growth, list(rows_of(growth, kinds, sizes))), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
