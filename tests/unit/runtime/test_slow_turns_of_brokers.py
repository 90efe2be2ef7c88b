"""The check that makes a test fail if the data loop of one of its brokers had a long turn."""

import logging
from pathlib import Path

from tests.support.slow_turns import CPU_MS_MAX, WATCHDOG, SlowTurns

from sskafka.runtime.loop_watchdog import SlowTurn


def report(cpu_ms: int) -> str:
    return str(SlowTurn(2.0, cpu_ms / 1000, "DescribeGroups", "handle (groups.py:1)"))


def test_long_turns_in_logs_of_brokers_are_found_once(tmp_path: Path) -> None:
    turns = SlowTurns()
    directory = tmp_path / "broker"
    directory.mkdir()
    (directory / "stderr.log").write_text(f"{report(CPU_MS_MAX)}\n{report(CPU_MS_MAX + 1)}\n")
    (directory / "00000000000000000000.log").write_text(report(CPU_MS_MAX + 2))
    assert turns.take([tmp_path]) == [report(CPU_MS_MAX + 1)]
    with (directory / "stderr.log").open("a") as log:
        log.write(report(CPU_MS_MAX + 3))
    assert turns.take([tmp_path]) == [report(CPU_MS_MAX + 3)]
    (directory / "stderr.log").unlink()  # otherwise this test fails, too
    logging.getLogger(WATCHDOG).removeHandler(turns)


def test_a_shared_directory_that_grows_no_more_is_read_at_the_end_of_a_file(tmp_path: Path) -> None:
    turns = SlowTurns()
    log = tmp_path / "stderr.log"
    log.write_text(report(CPU_MS_MAX + 1))
    assert turns.take([], [tmp_path]) == [report(CPU_MS_MAX + 1)]
    assert turns.take([], [tmp_path], is_end_of_file=True) == []
    assert turns.take([], [tmp_path], is_end_of_file=True) == [], "nothing was written during a whole file"
    log.write_text(f"{log.read_text()}{report(CPU_MS_MAX + 2)}\n")
    assert turns.take([], [tmp_path]) == []
    assert turns.take([], [tmp_path], is_end_of_file=True) == [report(CPU_MS_MAX + 2)]
    log.write_text(f"{log.read_text()}{report(CPU_MS_MAX + 3)}\n")
    assert turns.take([], [tmp_path]) == [report(CPU_MS_MAX + 3)], "its broker is in use again"
    log.unlink()
    logging.getLogger(WATCHDOG).removeHandler(turns)


def test_the_logs_of_partitions_are_not_searched(tmp_path: Path) -> None:
    turns = SlowTurns()
    (tmp_path / "data" / "orders-0").mkdir(parents=True)
    (tmp_path / "data" / "meta.properties").touch()
    (tmp_path / "data" / "orders-0" / "stderr.log").write_text(report(CPU_MS_MAX + 1))
    assert turns.take([tmp_path]) == []
    logging.getLogger(WATCHDOG).removeHandler(turns)


def test_long_turns_of_brokers_in_this_process_are_found(tmp_path: Path) -> None:
    turns = SlowTurns()
    turns.emit(logging.makeLogRecord({"msg": report(CPU_MS_MAX + 1)}))
    turns.emit(logging.makeLogRecord({"msg": f"{report(CPU_MS_MAX + 1)} < importlib._bootstrap"}))
    assert turns.take([tmp_path]) == [report(CPU_MS_MAX + 1)]
    logging.getLogger(WATCHDOG).removeHandler(turns)
