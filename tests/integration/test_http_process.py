"""The HTTP process and its broker: opened after the Kafka port, ended with it, started again when it dies."""

import os
import signal
import socket
from pathlib import Path

import httpx
import pytest
from broker_process import BrokerProcess, StartBroker, StartFailedError
from free_ports import free_ports
from http_client import HttpClient
from waiting import wait_until

HTTP = {"http.listener": "127.0.0.1:0"}
CHILD_MEMORY_BYTES_MAX = 120 * 1024 * 1024


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_process_ends_with_its_broker(start_broker: StartBroker) -> None:
    broker = start_broker(HTTP)
    (child,) = children(broker.pid)
    assert broker.stop() == 0
    assert not is_running(child)


def test_the_process_ends_with_a_broker_that_is_killed(start_broker: StartBroker) -> None:
    broker = start_broker(HTTP)
    (child,) = children(broker.pid)
    broker.kill()
    wait_until(lambda: not is_running(child), "the child ends")


def test_a_killed_broker_leaves_its_port_to_the_next(start_broker: StartBroker) -> None:
    (port,) = free_ports(1)
    broker = start_broker({"http.listener": f"127.0.0.1:{port}"})
    broker.restart(unclean=True)
    assert httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).status_code == 200


def test_a_process_that_dies_is_replaced_on_the_same_port(start_broker: StartBroker) -> None:
    broker = start_broker(HTTP)
    (child,) = children(broker.pid)
    os.kill(child, signal.SIGKILL)
    http = HttpClient(broker.http)  # it waits in the backlog until somebody accepts it
    assert http.get("/livez") == (200, {"status": "alive"})
    assert children(broker.pid) != [child]
    assert broker.is_running
    assert "the HTTP process ended" in broker.log
    http.close()


def test_ctrl_c_in_a_terminal_is_the_brokers_business(start_broker: StartBroker) -> None:
    broker = start_broker(HTTP)
    (child,) = children(broker.pid)
    os.kill(child, signal.SIGINT)
    assert httpx.get(f"http://{broker.http}/livez", trust_env=False).status_code == 200
    assert children(broker.pid) == [child]


def test_a_taken_port_is_named_with_the_way_out(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        broker = BrokerProcess(tmp_path / "broker", {"http.listener": f"127.0.0.1:{port}"})
        with pytest.raises(StartFailedError):
            broker.start()
        assert f"port {port} is taken" in broker.log
        assert "--set http.listener=" in broker.log
        broker.close()


def test_a_broker_whose_http_process_does_not_come_up_fails(tmp_path: Path) -> None:
    (tmp_path / "fastapi.py").write_text("raise ImportError('no fastapi here')\n")
    broker = BrokerProcess(tmp_path / "broker", HTTP, wrapper=("env", f"PYTHONPATH={tmp_path}"))
    with pytest.raises(StartFailedError):
        broker.start()
    assert "no fastapi here" in broker.log
    assert "error: the HTTP process ended with exit code 1" in broker.log
    broker.close()


def test_without_a_listener_there_is_no_process(start_broker: StartBroker) -> None:
    broker = start_broker()
    assert children(broker.pid) == []
    assert broker.http == ""


def test_the_process_is_small(start_broker: StartBroker) -> None:
    broker = start_broker(HTTP)
    (child,) = children(broker.pid)
    pages = int(Path(f"/proc/{child}/statm").read_text().split()[1])
    assert pages * os.sysconf("SC_PAGE_SIZE") < CHILD_MEMORY_BYTES_MAX


def test_votes_are_closed_without_the_labs_setting(start_broker: StartBroker) -> None:
    http = HttpClient(start_broker(HTTP).http)
    for route in ("voteRequest", "beginQuorumEpoch", "fetchMetadata"):
        assert http.post(f"/kraft/v1/{route}", {})[0] == 404
    http.close()
