import traceback
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from sskafka.pipelines.connector.broken_pipes import SPARKS_DAEMON, end_quietly_without_java


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
