"""`sskafka cluster status` on a cluster that loses a broker and gets it back."""

import json
from subprocess import CompletedProcess
from typing import Any

from command_line import run_sskafka
from waiting import wait_until

from sskafka.testing import StartCluster


def status(bootstrap: str, *options: str) -> CompletedProcess[str]:
    return run_sskafka("cluster", "status", "-b", bootstrap, *options)


def test_a_cluster_that_loses_a_broker(sskafka_cluster: StartCluster) -> None:
    cluster = sskafka_cluster(3)
    cluster.create_topic("orders", 3, replication_factor=3, configs={"min.insync.replicas": 3})
    healthy = status(cluster.bootstrap_servers)
    assert healthy.returncode == 0, healthy
    assert "nothing needs attention" in healthy.stdout
    assert "3 in 1 topic: 0 offline" in healthy.stdout
    assert "balance     a broker has 1 to 1 leaders, 3 to 3 replicas, 0 B to 0 B of logs\n" in healthy.stdout
    cluster.kill(3)

    def answer() -> dict[str, Any] | None:
        found = status(cluster.bootstrap_servers, "--format", "json")
        assert found.returncode in {0, 3}, found
        described: dict[str, Any] = json.loads(found.stdout)
        # The answers to several requests: the first may be of the moment before the broker was fenced.
        is_noticed = [broker["is_fenced"] for broker in described["brokers"]] == [False, False, True]
        is_missed = len(described["partitions"]["under_min_isr"]) == 3
        return described if is_noticed and is_missed and found.returncode == 3 else None

    described = wait_until(answer, "the lost broker is reported", 30)
    assert any("broker 3" in problem["text"] and problem["severity"] == "error" for problem in described["problems"])
    assert described["partitions"]["offline"] == []
    assert described["skew"]["replicas"] == {"least": 3, "most": 3, "mean": 3.0}
    text = status(cluster.bootstrap_servers)
    assert text.returncode == 3
    assert "next: start it, or remove it with `sskafka cluster unregister 3`" in text.stdout


def test_skew_is_reported_with_a_rebalance_that_helps(sskafka_cluster: StartCluster) -> None:
    cluster = sskafka_cluster(3)
    created = run_sskafka(
        *("topic", "create", "skewed", "--replica-assignment", "1,1,1,1,1,1", "-b", cluster.bootstrap_servers)
    )
    assert created.returncode == 0, created
    skewed = status(cluster.bootstrap_servers)
    assert skewed.returncode == 0, "skew alone is not an alarm"
    assert "0 to 6 replicas" in skewed.stdout
    assert "`sskafka topic rebalance --by replicas --dry-run`" in skewed.stdout
    moved = run_sskafka("topic", "rebalance", "--by", "replicas", "-b", cluster.bootstrap_servers)
    assert moved.returncode == 0, moved
    described = json.loads(status(cluster.bootstrap_servers, "--output", "json").stdout)
    assert (described["skew"]["replicas"]["most"], described["rebalance_by"]) == (2, None)
    cluster.produce("skewed", *[b"x" * 100_000] * 1_100, partition=0)  # one partition: no move would help
    described = json.loads(status(cluster.bootstrap_servers, "--output", "json").stdout)
    assert described["skew"]["log_bytes"]["most"] > 100_000_000
    assert described["rebalance_by"] is None


def test_a_cluster_that_does_not_answer() -> None:
    failed = status("127.0.0.1:1")
    assert failed.returncode == 1
    assert "Traceback" not in failed.stderr
