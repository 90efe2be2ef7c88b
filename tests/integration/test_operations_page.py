"""docs/operations.md: its console blocks, one after the other, against a cluster of four brokers."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sskafka.testing.process_cluster import ProcessCluster

pytestmark = pytest.mark.long

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations.md"
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"^<!-- not run: [^>]*-->\n```console\n.*?^```", re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    page = NOT_RUN.sub("", PAGE.read_text(encoding="utf-8"))
    lines = [line for block in BLOCK.findall(page) for line in block.splitlines()]
    assert all(line.startswith("$ ") for line in lines), "the page shows commands without their output"
    return [line.removeprefix("$ ") for line in lines]


def test_every_command_of_the_page_works(tmp_path: Path) -> None:
    with ProcessCluster(4, directory=tmp_path / "sskafka-cluster") as cluster:
        before = cluster.pid(2)
        script = "set -euo pipefail\n" + "".join(
            f"echo '+' {number}; {line}\n" for number, line in enumerate(commands())
        )
        environment = {
            **os.environ,
            "SSKAFKA_BOOTSTRAP": cluster.bootstrap_servers,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{cluster.logs()[-3000:]}"
        assert "broker 4 has no replicas; repeat the command after its stop to unregister it" in done.stderr
        assert cluster.pid(2) != before, "it was restarted"
        assert all(4 not in cluster.describe_partition("orders", number).replicas for number in range(6))
        assert len(cluster.consume("orders")) == 2000
        assert cluster.stop() == 0, "`cluster up` stops the broker that it has started again, too"
