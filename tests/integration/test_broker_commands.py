"""One of four brokers is drained, then decommissioned, while clients write: nothing fails, nothing is lost."""

import json
import re
import subprocess
import sys
import time
from typing import Any

import pytest
from cluster_load import Load
from waiting import wait_until

from sskafka.testing import StartCluster
from sskafka.testing.process_cluster import ProcessCluster

pytestmark = pytest.mark.long

PARTITIONS = 4
LEAVING = 4
THROTTLE = 1_500_000
STILL_BYTES = 1_200_000
"""Bytes of each partition of the topic to which nobody writes: enough that a move takes a moment."""


def run(cluster: ProcessCluster, *words: str, exit_code: int = 0) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "sskafka", *words, "-b", cluster.bootstrap_servers]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=90)
    assert done.returncode == exit_code, done
    assert "Traceback" not in done.stderr
    return done


def brokers(cluster: ProcessCluster) -> dict[int, dict[str, Any]]:
    found = json.loads(run(cluster, "broker", "list", "--output", "json").stdout)
    return {broker["node_id"]: broker for broker in found}


def test_a_broker_is_drained_and_decommissioned_under_load(sskafka_cluster: StartCluster) -> None:
    cluster = sskafka_cluster(4, {"min.insync.replicas": 2})
    cluster.create_topic("orders", PARTITIONS, replication_factor=3)
    cluster.create_topic("still", PARTITIONS, replication_factor=3)
    for partition in range(PARTITIONS):
        cluster.produce("still", *[b"x" * 100_000] * (STILL_BYTES // 100_000), partition=partition)
    load = Load(cluster.bootstrap_servers, "orders", PARTITIONS)
    with load.running():
        check_drain(cluster)
        load.wait_for_progress()
        check_decommission(cluster)
        load.wait_for_progress()
    load.verify()
    assert LEAVING not in brokers(cluster)
    assert len(cluster.consume("still")) == PARTITIONS * STILL_BYTES // 100_000
    restart = run(cluster, "cluster", "restart", "--dir", str(cluster.directory), "--dry-run").stderr
    assert "broker 4 is skipped: it is not registered and does not run" in restart
    assert all(f"broker {node_id} would be restarted" in restart for node_id in (1, 2, 3))


def check_drain(cluster: ProcessCluster) -> None:
    """The drained broker stays in sync, leads nothing, and gets no new replicas until it is undrained."""
    assert run(cluster, "broker", "safe-to-stop", str(LEAVING), "--wait", "20").stderr == "broker 4 is safe to stop\n"
    run(cluster, "broker", "drain", str(LEAVING))
    drained = brokers(cluster)[LEAVING]
    assert (drained["state"], drained["leaders"]) == ("drained", 0)
    assert drained["replicas"] > 0
    cluster.create_topic("later", 6, replication_factor=2)
    assert all(LEAVING not in cluster.describe_partition("later", number).replicas for number in range(6))
    run(cluster, "broker", "undrain", str(LEAVING))
    assert brokers(cluster)[LEAVING]["leaders"] > 0


def check_decommission(cluster: ProcessCluster) -> None:
    """The plan says what is copied and how long that takes at least; both come true."""
    planned = run(cluster, "broker", "decommission", str(LEAVING), "--throttle", str(THROTTLE), "--dry-run", "--json")
    plan = json.loads(planned.stdout)
    assert plan["copied_bytes"] >= STILL_BYTES, "the broker has replicas"
    assert all(LEAVING in move["replicas"] and LEAVING not in move["new_replicas"] for move in plan["moves"])
    command = [sys.executable, "-m", "sskafka", "broker", "decommission", str(LEAVING), "--throttle", str(THROTTLE)]
    began = time.monotonic()
    with subprocess.Popen(
        [*command, "--yes", "-b", cluster.bootstrap_servers], stderr=subprocess.PIPE, text=True
    ) as done:
        assert done.stderr is not None
        lines = []
        for line in done.stderr:
            lines.append(line)
            if "stop it now" in line:
                took = time.monotonic() - began
                cluster.stop_broker(LEAVING)
        assert done.wait(60) == 0, lines
    text = "".join(lines)
    assert took >= plan["planned_seconds"] * 0.6, "the throttle was kept"
    assert took <= plan["planned_seconds"] * 4 + 15, "and nothing but the throttle took long"
    assert re.search(r"\[#*-*\] +\d+%  .* of .*/s.*, \d+ of \d+ partitions", text), "progress was shown"
    assert "broker 4 is unregistered" in text
    for topic in ("orders", "still"):
        replicas = [cluster.describe_partition(topic, number).replicas for number in range(PARTITIONS)]
        assert all(len(set(one)) == 3 and LEAVING not in one for one in replicas)
    throttles = json.loads(run(cluster, "config", "describe", "--topic", "still", "--output", "json").stdout)
    assert not [one for one in throttles if "throttled" in one["name"]]


def test_a_rebalance_uses_the_brokers_that_have_little(sskafka_cluster: StartCluster) -> None:
    cluster = sskafka_cluster(3)
    run(cluster, "broker", "drain", "3")
    cluster.create_topic("orders", 6, replication_factor=1)
    cluster.produce("orders", *["x" * 1000] * 20, partition=0)
    run(cluster, "broker", "undrain", "3")
    assert "copy 2 replicas" in run(cluster, "topic", "rebalance", "ord*", "--dry-run").stderr
    run(cluster, "topic", "rebalance", "orders", "--throttle", "10MB")
    assert "nothing to do" in run(cluster, "topic", "rebalance", "orders").stderr
    assert "no partitions are being moved" in run(cluster, "topic", "rebalance", "--cancel").stderr
    held = {number: cluster.describe_partition("orders", number).replicas[0] for number in range(6)}
    assert sorted(held.values()) == [1, 1, 2, 2, 3, 3]
    assert len(cluster.consume("orders")) == 20
    assert "no broker 9" in run(cluster, "broker", "drain", "9", exit_code=1).stderr
    check_unhealthy(cluster)


def check_unhealthy(cluster: ProcessCluster) -> None:
    """One replica each: a broker must not stop, and its partitions are unavailable when it does."""
    risky = json.loads(run(cluster, "broker", "safe-to-stop", "3", "--output", "json", exit_code=3).stdout)
    assert not risky["safe"]
    assert len(risky["risks"]) == 2
    assert "no partition is without a leader" in run(cluster, "topic", "describe", "--unavailable").stderr
    cluster.kill(3)

    def unavailable() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(
            run(cluster, "topic", "describe", "--unavailable", "--under-replicated", "--output", "json").stdout
        )
        return found if len(found) == 2 else []

    assert {one["leader"] for one in wait_until(unavailable, "two partitions have no leader", 30)} == {-1}
