from pathlib import Path

from sskafka.evaluation.grid import GridPlan, new_run, shares_of
from sskafka.evaluation.latencies import Latencies
from sskafka.evaluation.results import Cell, Row, read_results, write_results
from sskafka.evaluation.workers import Totals


def plan(**changes: object) -> GridPlan:
    base = GridPlan([1, 2], [1, 3], [1, 3], 2, 2, 1.0, 100, {"acks": "1", "compression.type": "lz4"})
    return base._replace(**changes)  # type: ignore[arg-type]


def test_replication_factors_above_the_brokers_are_skipped() -> None:
    assert list(plan().cells()) == [
        Cell(1, 1, 1),
        Cell(1, 2, 1),
        Cell(3, 1, 1),
        Cell(3, 2, 1),
        Cell(3, 1, 3),
        Cell(3, 2, 3),
    ]
    assert list(plan(brokers=[2], replications=[3]).cells()) == []


def test_partitions_are_shared_and_every_consumer_has_one() -> None:
    assert [shares_of(5, 2, number) for number in range(2)] == [(0, 2, 4), (1, 3)]
    assert [shares_of(2, 5, number) for number in range(5)] == [(0,), (1,), (0,), (1,), (0,)]


def test_rows_are_written_and_read(tmp_path: Path) -> None:
    run = new_run(plan())
    assert (run.acks, run.compression) == ("1", "lz4")
    latencies = Latencies()
    latencies.add(2.0, 10)
    row = Row.of(run, Cell(3, 2, 1), "produce", 2, Totals(1000, 2**20, 2.0, latencies))
    assert (row.records_per_second, row.mb_per_second, row.latency_p99_ms) == (500.0, 0.5, 2.0)
    write_results(tmp_path / "results.json", run, [row])
    assert read_results(tmp_path / "results.json") == [row]
