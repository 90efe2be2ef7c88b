"""Results of a run: one flat row per measurement, in a JSON file and as records of a topic.

The key of a record is the run id, its value the row as JSON in UTF-8 (docs/evaluation.md lists the fields). One topic
can hold the rows of many runs, for comparison.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from sskafka.evaluation.workers import Totals

FORMAT = 1


class Run(NamedTuple):
    """Fields that all rows of a run share."""

    run_id: str
    started_at: str
    """UTC, ISO 8601."""
    version: str
    machine: str
    cpus: int
    record_size: int
    acks: str
    compression: str


class Cell(NamedTuple):
    """The cluster size and topic of a measurement."""

    brokers: int
    partitions: int
    replication: int


class Row(NamedTuple):
    format: int
    run_id: str
    started_at: str
    version: str
    machine: str
    cpus: int
    record_size: int
    acks: str
    compression: str
    brokers: int
    partitions: int
    replication: int
    phase: str
    """`produce` or `consume`."""
    clients: int
    seconds: float
    records: int
    size_bytes: int
    records_per_second: float
    mb_per_second: float
    latency_avg_ms: float
    latency_p50_ms: float
    latency_p95_ms: float
    latency_p99_ms: float
    latency_p999_ms: float
    latency_max_ms: float

    @property
    def cell(self) -> Cell:
        return Cell(self.brokers, self.partitions, self.replication)

    @classmethod
    def of(cls, run: Run, cell: Cell, phase: str, clients: int, totals: Totals) -> Self:
        latencies = totals.latencies
        p50, p95, p99, p999 = (round(latencies.percentile_ms(percent), 3) for percent in (50, 95, 99, 99.9))
        return cls(
            FORMAT,
            *run,
            *cell,
            phase,
            clients,
            round(totals.seconds, 3),
            totals.records,
            totals.size_bytes,
            round(totals.records_per_second, 1),
            round(totals.mb_per_second, 3),
            round(latencies.average_ms, 3),
            p50,
            p95,
            p99,
            p999,
            round(latencies.max_ms, 3),
        )

    def to_json(self) -> dict[str, Any]:
        return self._asdict()


def write_results(path: Path, run: Run, rows: Iterable[Row]) -> None:
    document = {"run": run._asdict(), "rows": [row.to_json() for row in rows]}
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def read_results(path: Path) -> list[Row]:
    document = json.loads(path.read_text(encoding="utf-8"))
    return [Row(**values) for values in document["rows"]]


def keep_results(bootstrap: str, topic: str, run: Run, rows: Sequence[Row]) -> None:
    """Write the rows to a topic, which is auto-created if it does not exist and the brokers allow it."""
    from sskafka.client.sync_clients import Producer  # noqa: PLC0415

    with Producer(bootstrap) as producer:
        producer.send_batch(topic, run.run_id, [json.dumps(row.to_json()) for row in rows])
