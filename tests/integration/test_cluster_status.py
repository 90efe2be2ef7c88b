"""`sskafka cluster status` on a cluster that loses a broker and gets it back."""

import json
import subprocess
import sys
from typing import Any

from waiting import wait_until

from sskafka.testing import StartCluster


def status(bootstrap: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sskafka", "cluster", "status", "-b", bootstrap, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_a_cluster_that_loses_a_broker(sskafka_cluster: StartCluster) -> None:
    cluster = sskafka_cluster(3)
    cluster.create_topic("orders", 3, replication_factor=3, configs={"min.insync.replicas": 3})
    healthy = status(cluster.bootstrap_servers)
    assert healthy.returncode == 0, healthy
    assert "nothing needs attention" in healthy.stdout
    assert "3 in 1 topic: 0 offline" in healthy.stdout
    cluster.kill(3)

    def answer() -> dict[str, Any] | None:
        found = status(cluster.bootstrap_servers, "--format", "json")
        assert found.returncode in {0, 3}, found
        described: dict[str, Any] = json.loads(found.stdout)
        is_noticed = len(described["partitions"]["under_min_isr"]) == 3
        return described if is_noticed and found.returncode == 3 else None

    described = wait_until(answer, "the lost broker is reported", 30)
    assert [broker["is_fenced"] for broker in described["brokers"]] == [False, False, True]
    assert any("broker 3" in problem["text"] and problem["severity"] == "error" for problem in described["problems"])
    assert described["partitions"]["offline"] == []
    text = status(cluster.bootstrap_servers)
    assert text.returncode == 3
    assert "next: start it, or remove it with `sskafka cluster unregister 3`" in text.stdout


def test_a_cluster_that_does_not_answer() -> None:
    failed = status("127.0.0.1:1")
    assert failed.returncode == 1
    assert "Traceback" not in failed.stderr
