"""The workload of a local cluster: the brokers stop after it, however it ends."""

import asyncio
import os
import signal
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

from sskafka.cli import stop_signals
from sskafka.cli.cluster.homes import find_cluster, wanted_ports
from sskafka.cli.cluster.ports import ADR, ANY_PORT, HTTP, KAFKA, PortOption
from sskafka.cli.cluster.readiness import Member
from sskafka.cli.cluster.up import Workload, run_cluster

PORTS = {KAFKA: PortOption(ANY_PORT), HTTP: PortOption(is_open=False), ADR: PortOption(is_open=False)}


def run_workload(directory: Path, workload: Workload) -> Coroutine[Any, Any, int]:
    cluster = find_cluster(directory, 1, 1)
    return run_cluster(cluster, wanted_ports(cluster, PORTS), {}, workload=workload)


def has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def pid_of_broker(directory: Path) -> int:
    return int((directory / "broker-1" / "broker.pid").read_text())


def test_a_workload_that_ends_ends_the_cluster(tmp_path: Path) -> None:
    pids: list[int] = []

    async def workload(members: Sequence[Member], stopped: "asyncio.Future[signal.Signals]") -> None:
        assert [member.node_id for member in members] == [1]
        pids.append(pid_of_broker(tmp_path))
        assert not has_ended(pids[0])

    assert asyncio.run(run_workload(tmp_path, workload)) == 0
    assert has_ended(pids[0])


def test_a_workload_that_fails_leaves_no_broker(tmp_path: Path) -> None:
    pids: list[int] = []

    async def workload(members: Sequence[Member], stopped: "asyncio.Future[signal.Signals]") -> None:
        pids.append(pid_of_broker(tmp_path))
        raise RuntimeError("no Spark today")

    with pytest.raises(RuntimeError, match="no Spark today"):
        asyncio.run(run_workload(tmp_path, workload))
    assert has_ended(pids[0])


def test_brokers_wait_for_a_workload_that_has_heard_the_signal(tmp_path: Path) -> None:
    pids: list[int] = []

    async def workload(members: Sequence[Member], stopped: "asyncio.Future[signal.Signals]") -> None:
        pids.append(pid_of_broker(tmp_path))
        signal.raise_signal(signal.SIGINT)
        assert await stopped is signal.SIGINT
        assert not has_ended(pids[0])

    assert asyncio.run(run_workload(tmp_path, workload)) == 130
    assert has_ended(pids[0])


def test_a_second_signal_waits_for_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop_signals, "ECHO_S", 0.0)
    pids: list[int] = []

    async def workload(members: Sequence[Member], stopped: "asyncio.Future[signal.Signals]") -> None:
        pids.append(pid_of_broker(tmp_path))
        signal.raise_signal(signal.SIGTERM)
        await stopped
        signal.raise_signal(signal.SIGTERM)
        await asyncio.Event().wait()

    assert asyncio.run(run_workload(tmp_path, workload)) == 1
    assert has_ended(pids[0])
