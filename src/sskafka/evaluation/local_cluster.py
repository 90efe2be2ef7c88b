"""A cluster for the duration of a measurement: `sskafka cluster up` in its own directory, on free ports."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO

READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0


class ClusterStartError(Exception):
    """The cluster did not start; the message says where its logs are."""


@asynccontextmanager
async def local_cluster(directory: Path, brokers: int) -> AsyncIterator[str]:
    """Start a cluster and yield its bootstrap servers."""
    with _log_file(directory) as talk:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "sskafka", "cluster", "up", "-n", str(brokers), "--dir", str(directory)),
            *("--kafka-port", "0", "--no-http", "--no-adr"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=talk,
            process_group=0,
        )
    try:
        yield await _bootstrap(process, directory)
    finally:
        await _stop(process)


def _log_file(directory: Path) -> BinaryIO:
    directory.mkdir(parents=True, exist_ok=True)
    return (directory / "up.log").open("ab")


async def _bootstrap(process: asyncio.subprocess.Process, directory: Path) -> str:
    assert process.stdout is not None
    try:
        async with asyncio.timeout(READY_TIMEOUT_S):
            line = (await process.stdout.readline()).decode()
    except TimeoutError:
        line = ""
    words = dict(word.split("=", 1) for word in line.split()[1:])
    if "bootstrap" not in words:
        raise ClusterStartError(f"the cluster in {directory} did not start; see broker-*/broker.log there")
    return words["bootstrap"]


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Stop the cluster command, which stops its brokers, and kills those that do not stop."""
    if process.returncode is None:
        process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), STOP_TIMEOUT_S)
        except TimeoutError:
            process.send_signal(signal.SIGTERM)
            await process.wait()
