"""What garbage collections of Spark's Python processes skip, and how the processes end."""

import subprocess
import sys
import traceback
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from sskafka.pipelines.connector.spark_process import SPARKS_DAEMON, end_quietly_without_java

PROGRAM = """
import gc
from sskafka.pipelines.connector import spark_process

class Node:
    pass

def make_cycle():
    node = Node()
    node.itself = node

for _ in range(spark_process.FREEZES_MAX):
    spark_process.skip_imported_objects()
frozen = gc.get_freeze_count()
assert frozen > 5_000, frozen
assert len(gc.get_objects()) < frozen / 100
make_cycle()
spark_process.skip_imported_objects()
assert gc.get_freeze_count() == frozen
assert gc.collect() > 0, "garbage of later tasks is collected"
"""


def test_imported_objects_are_skipped_and_garbage_of_later_tasks_is_not() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)


def program(name: str) -> ModuleType:
    main = ModuleType("__main__")
    main.__spec__ = ModuleSpec(name, None)
    main.traceback = traceback  # type: ignore[attr-defined]
    return main


def printed(main: ModuleType, error: Exception, capsys: pytest.CaptureFixture[str]) -> str:
    try:
        raise error
    except type(error):
        main.traceback.print_exc()
    return capsys.readouterr().err


def test_a_process_of_sparks_daemon_prints_no_broken_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    main = program(SPARKS_DAEMON)
    assert "BrokenPipeError" in printed(main, BrokenPipeError(), capsys)
    end_quietly_without_java(main)
    assert not printed(main, BrokenPipeError(), capsys)
    assert "ValueError" in printed(main, ValueError(), capsys)
    assert main.traceback.format_exc is traceback.format_exc


def test_other_programs_are_left_alone() -> None:
    main = program("sskafka.__main__")
    end_quietly_without_java(main)
    assert main.traceback is traceback
