"""The lines of README and docs that call Docker work as printed, with podman in its place, on the ports they name."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from engine import ROOT, Engine
from outside import SECONDS_MAX, addresses, read, write
from page_blocks import PageRun, blocks_of, commands_of
from page_lists import CONTAINER_LINES
from page_servers import Addresses
from tests.integration.waiting import wait_until

LAB = "docker compose up --build"
LAB_PORTS = range(8001, 8006)
NOT_IN_CONTAINERS = ("docker", "pip install", "sskafka")
pytestmark = pytest.mark.usefixtures("has_real_base")


@contextmanager
def running(engine: Engine, line: str) -> Iterator[None]:
    """Run a line until the end of the block, then remove its containers, volumes and networks."""
    command = ["bash", "-c", f"exec {line}"]
    with (engine.home / "docker.log").open("wb") as log:
        process = subprocess.Popen(command, env=engine.environment, cwd=ROOT, stdout=log, stderr=log)
    try:
        yield
        assert process.poll() is None, (engine.home / "docker.log").read_text()[-3000:]
    finally:
        engine.run("podman", "rm", "--all", "--force", "--time", "30")
        process.terminate()
        process.wait(SECONDS_MAX)
        engine.run("podman", "volume", "prune", "--force")
        engine.run("podman", "network", "prune", "--force")


def test_the_image_is_built(engine: Engine) -> None:
    engine.run("bash", "-c", "docker build -t sskafka .")


@pytest.mark.parametrize("line", [line for line, told in CONTAINER_LINES.items() if told])
def test_brokers_serve_clients_outside(engine: Engine, line: str) -> None:
    told = list(CONTAINER_LINES[line])
    with running(engine, line):
        wait_until(lambda: addresses("localhost:9092") == told, f"{line} tells {told}", SECONDS_MAX)
        if told[0] == "localhost:9092":
            write("localhost:9092", b"3 apples")
            assert read(told[-1], 1) == [b"3 apples"]


def is_up(port: int) -> bool:
    try:
        with urlopen(f"http://localhost:{port}/healthcheck", timeout=5) as answer:
            return answer.status == 200
    except (URLError, ConnectionError):
        return False


@pytest.mark.parametrize("page", ["README.md", "docs/lab.md"])
def test_the_scripts_of_the_lab_reach_its_brokers(engine: Engine, page: str, tmp_path: Path) -> None:
    (block,) = (block for block in blocks_of(ROOT / page) if LAB in [each.line for each in commands_of(block.text)])
    lab = ",".join(f"{number}@localhost:{port}" for number, port in enumerate(LAB_PORTS, 1))
    with running(engine, LAB):
        for port in LAB_PORTS:
            wait_until(lambda at=port: is_up(at), f"the broker at {port} is up", SECONDS_MAX)
        with PageRun(tmp_path, at=Addresses("", "localhost:8001", "", lab), left_out=NOT_IN_CONTAINERS) as run:
            run.run_block(block)
