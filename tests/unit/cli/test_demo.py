"""The demo before anything is started: its ports, and what it needs."""

import socket

import pytest
from typer.testing import CliRunner

from sskafka.cli import demo
from sskafka.cli.cluster.ports import ANY_PORT, HOST, HTTP, KAFKA
from sskafka.cli.commands import app
from sskafka.cli.demo import BROKERS, _first_port


def test_the_usual_ports_unless_one_of_them_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert _first_port(KAFKA._replace(default_first_port=port - BROKERS + 1), None) == ANY_PORT
        assert _first_port(HTTP, port) == port


def test_ports_that_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "connect_ex", lambda self, address: 111)
    assert _first_port(KAFKA, None) == KAFKA.default_first_port


def test_without_spark_the_demo_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "find_spec", lambda name: None)
    result = CliRunner().invoke(app, ["demo"])
    assert result.exit_code == 1
    assert "the demo needs pyspark" in result.output
    assert "pip install 'sskafka[spark]'" in result.output
