"""`sskafka start` before and beside the broker itself."""

import os
from pathlib import Path

import pytest

from sskafka.cli.broker_settings import load_settings
from sskafka.cli.failures import CommandError
from sskafka.cli.start import pid_file


def test_the_pid_file_is_there_while_the_broker_runs(tmp_path: Path) -> None:
    with pid_file(tmp_path):
        assert (tmp_path / "broker.pid").read_text() == f"{os.getpid()}\n"
    assert not (tmp_path / "broker.pid").exists()


def test_a_start_that_fails_leaves_the_pid_of_the_broker_that_serves(tmp_path: Path) -> None:
    (tmp_path / "broker.pid").write_text("4711\n")
    with pytest.raises(ZeroDivisionError), pid_file(tmp_path):
        raise ZeroDivisionError
    assert (tmp_path / "broker.pid").read_text() == "4711\n"


def test_a_broker_starts_without_a_pid_file_where_it_may_not_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broker.pid").mkdir()
    with pid_file(tmp_path):
        assert "cannot write" in capsys.readouterr().err


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes(b"node.id=\xff\n")
    with pytest.raises(CommandError, match=r"server\.properties is not valid UTF-8 text"):
        load_settings(file, None)


def test_without_a_file_the_listed_brokers_say_where_this_one_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKER_ID", "2")
    monkeypatch.setenv("BROKERS", "1@broker-1:8080,2@broker-2:8080")
    settings = load_settings(None, None)
    assert settings["node.id"] == 2
    assert settings["controller.quorum.voters"] == ("1@broker-1:9092", "2@broker-2:9092")
    assert settings["listeners"] == ("PLAINTEXT://:9092",)
    assert settings["advertised.listeners"] == ("PLAINTEXT://broker-2:9092",)
    assert settings["http.listener"] == ":8080"
