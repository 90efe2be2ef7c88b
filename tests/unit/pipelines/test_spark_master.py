"""Spark's master: mistakes are found before Java starts."""

import socket

import pytest

from sskafka.pipelines.master import MasterError, check_master
from sskafka.pipelines.session import SessionSettings, start_session


@pytest.mark.parametrize(
    "master", ["local", "local[*]", "local[4]", "local[2, 3]", "local-cluster[2,1,1024]", "sc://host"]
)
def test_masters_that_need_no_connection(master: str) -> None:
    check_master(master)


@pytest.mark.parametrize(
    "master", ["foo", "", "local[x]", "local[2", "spark:host:7077", "http://host", "localhost:7077"]
)
def test_a_master_of_no_known_form_is_refused_with_the_forms(master: str) -> None:
    with pytest.raises(MasterError, match="not a master that Spark knows") as failure:
        check_master(master)
    assert "spark://HOST:PORT" in failure.value.hint


@pytest.mark.parametrize("master", ["spark://:7077", "spark://host:port", "k8s://https://"])
def test_an_address_without_host_or_port_is_refused(master: str) -> None:
    with pytest.raises(MasterError, match=r"names no host|has no valid port"):
        check_master(master)


def test_an_address_where_nothing_listens_is_refused_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(MasterError, match=rf"127.0.0.1:{port}: Connection refused"):
        check_master(f"spark://127.0.0.1:{port}")


def test_one_of_several_masters_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        closed = free.getsockname()[1]
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_master(f"spark://127.0.0.1:{closed},127.0.0.1:{server.getsockname()[1]}")
        check_master(f"k8s://https://127.0.0.1:{server.getsockname()[1]}")


def test_yarn_needs_the_configuration_of_hadoop() -> None:
    check_master("yarn", {"HADOOP_CONF_DIR": "/etc/hadoop"})
    with pytest.raises(MasterError, match="HADOOP_CONF_DIR"):
        check_master("yarn", {})


def test_a_session_is_refused_before_anything_is_started() -> None:
    told: list[str] = []
    with pytest.raises(MasterError):
        start_session(SessionSettings(master="foo"), told.append)
    assert told == []
