"""Throughput by partitions x brokers x replication: one cluster per number of brokers, one topic per cell.

In each cell the producers run first, then the consumers, for the same time. A replication factor above the number of
brokers is skipped.
"""

import asyncio
import os
import platform
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, NamedTuple

from sskafka.client.admin import Admin, NewTopic
from sskafka.client.cluster import Cluster
from sskafka.client.config import ProducerConfig, configured
from sskafka.evaluation.load import LoadSpec, Window
from sskafka.evaluation.results import Cell, Row, Run
from sskafka.evaluation.workers import Totals, run_workers
from sskafka.model.errors import KafkaError
from sskafka.model.version import __version__

PHASES = ("produce", "consume")
READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0


class GridPlan(NamedTuple):
    partitions: Sequence[int]
    brokers: Sequence[int]
    replications: Sequence[int]
    producers: int
    consumers: int
    seconds: float
    record_size: int
    properties: dict[str, str]
    is_by_batch: bool = True
    """False: use the regular clients, which then limit the result."""

    def cells(self) -> Iterator[Cell]:
        for brokers in self.brokers:
            yield from self.cells_of(brokers)

    def cells_of(self, brokers: int) -> Iterator[Cell]:
        """Yield the cells that need a cluster of this size."""
        for replication in self.replications:
            if replication <= brokers:
                yield from (Cell(brokers, partitions, replication) for partitions in self.partitions)


class GridProgress(NamedTuple):
    """Callbacks for the progress of a run."""

    cluster_starts: Callable[[int], None]
    phase_starts: Callable[[Cell, str], None]
    moved: Callable[[Window], None]
    phase_ended: Callable[[Row], None]


def new_run(plan: GridPlan) -> Run:
    started = datetime.now(UTC)
    config = configured(ProducerConfig, plan.properties)
    return Run(
        run_id=f"{started:%Y%m%dT%H%M%SZ}-{os.urandom(2).hex()}",
        started_at=started.isoformat(timespec="seconds"),
        version=__version__,
        machine=f"{platform.machine()}, Python {platform.python_version()}",
        cpus=os.cpu_count() or 1,
        record_size=plan.record_size,
        acks=config.acks,
        compression=config.compression_type,
    )


async def run_grid(plan: GridPlan, run: Run, directory: Path, progress: GridProgress) -> list[Row]:
    rows: list[Row] = []
    for brokers in plan.brokers:
        cells = list(plan.cells_of(brokers))
        if not cells:
            continue
        progress.cluster_starts(brokers)
        async with local_cluster(directory / f"{brokers}-brokers", brokers) as bootstrap:
            for cell in cells:
                rows += await _measure(plan, run, cell, bootstrap, progress)
    return rows


async def _measure(plan: GridPlan, run: Run, cell: Cell, bootstrap: str, progress: GridProgress) -> list[Row]:
    rows = []
    async with _topic(bootstrap, cell) as topic:
        for phase in PHASES:
            progress.phase_starts(cell, phase)
            specs = _specs(plan, phase, bootstrap, topic, cell)
            totals: Totals = await run_workers(specs, progress.moved)
            rows.append(Row.of(run, cell, phase, len(specs), totals))
            progress.phase_ended(rows[-1])
    return rows


@asynccontextmanager
async def _topic(bootstrap: str, cell: Cell) -> AsyncIterator[str]:
    """Create the topic and yield its name. It is deleted afterwards: a fast cluster fills a disk in minutes."""
    name = f"p{cell.partitions}-r{cell.replication}"
    configs = {"file.delete.delay.ms": "0"}
    async with Cluster(bootstrap) as cluster:
        admin = Admin(cluster)
        outcomes = await admin.create_topics([NewTopic(name, cell.partitions, cell.replication, configs)])
        for outcome in outcomes.values():
            if isinstance(outcome, KafkaError):
                raise outcome
        yield name
        await admin.delete_topics([name])


def _specs(plan: GridPlan, phase: str, bootstrap: str, topic: str, cell: Cell) -> list[LoadSpec]:
    common = LoadSpec(phase, bootstrap, topic, seconds=plan.seconds, record_size=plan.record_size)
    common = common._replace(properties=plan.properties, is_by_batch=plan.is_by_batch)
    if phase == "produce":
        return [common] * plan.producers
    return [
        common._replace(partitions=shares_of(cell.partitions, plan.consumers, number), repeats=True)
        for number in range(plan.consumers)
    ]


def shares_of(partitions: int, consumers: int, number: int) -> tuple[int, ...]:
    """Return the partitions of one consumer, assigned round-robin; surplus consumers share partitions."""
    return tuple(range(number, partitions, consumers)) or (number % partitions,)


class ClusterStartError(Exception):
    """The cluster did not start; the message says where its logs are."""


@asynccontextmanager
async def local_cluster(directory: Path, brokers: int) -> AsyncIterator[str]:
    """Start a cluster for one measurement, in its own directory on free ports, and yield its bootstrap servers."""
    with _log_file(directory) as talk:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "sskafka", "cluster", "up", "-n", str(brokers), "--dir", str(directory)),
            *("--kafka-port", "0", "--no-http", "--no-adr"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=talk,
            process_group=0,
        )
    try:
        yield await _bootstrap(process, directory)
    finally:
        await _stop(process)


def _log_file(directory: Path) -> BinaryIO:
    directory.mkdir(parents=True, exist_ok=True)
    return (directory / "up.log").open("ab")


async def _bootstrap(process: asyncio.subprocess.Process, directory: Path) -> str:
    assert process.stdout is not None
    try:
        async with asyncio.timeout(READY_TIMEOUT_S):
            line = (await process.stdout.readline()).decode()
    except TimeoutError:
        line = ""
    words = dict(word.split("=", 1) for word in line.split()[1:])
    if "bootstrap" not in words:
        raise ClusterStartError(f"the cluster in {directory} did not start; see broker-*/broker.log there")
    return words["bootstrap"]


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Stop the cluster command, which stops its brokers, and kills those that do not stop."""
    if process.returncode is None:
        process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), STOP_TIMEOUT_S)
        except TimeoutError:
            process.send_signal(signal.SIGTERM)
            await process.wait()
