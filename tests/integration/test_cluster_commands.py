"""Commands about a cluster, against one that runs: the quorum, moves of partitions, leadership, the ZooKeeper view."""

import json
from typing import Any

import pytest
from cluster_processes import StartCluster
from command_line import run_sskafka
from waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("_ours")]


def run(bootstrap: str, *arguments: str, exit_code: int = 0) -> str:
    ended = run_sskafka(*arguments, "-b", bootstrap)
    assert ended.returncode == exit_code, ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.stdout + ended.stderr


def run_json(bootstrap: str, *arguments: str) -> Any:
    return json.loads(run(bootstrap, *arguments, "--format", "json"))


def test_quorum_moves_and_leadership(start_cluster: StartCluster) -> None:
    cluster = start_cluster(3)
    check_quorum(cluster.bootstrap, cluster.controller())
    cluster.create_topic("moved", partitions=1, replicas=2)
    before = cluster.partitions("moved")[0]
    (newcomer,) = set(cluster.node_ids) - set(before.replicas)
    wanted = [newcomer, before.replicas[0]]
    run(cluster.bootstrap, "cluster", "reassign", f"moved:0={wanted[0]},{wanted[1]}")
    wait_until(lambda: run_json(cluster.bootstrap, "cluster", "reassignments") == [], "the move is done")
    wait_until(lambda: cluster.partitions("moved")[0].replicas == wanted, "every broker knows")
    run(cluster.bootstrap, "cluster", "elect-leaders", "moved:0")
    wait_until(lambda: cluster.partitions("moved")[0].leader == newcomer, "the preferred replica leads")
    assert "preferred leader" in run(cluster.bootstrap, "cluster", "elect-leaders")
    assert "error: moved:7" in run(cluster.bootstrap, "cluster", "reassign", "moved:7=1,2", exit_code=1)


def check_quorum(bootstrap: str, controller: int) -> None:
    found = run_json(bootstrap, "metadata", "quorum")
    assert found["leader_id"] == controller
    assert found["leader_epoch"] >= 1
    assert [voter["node_id"] for voter in found["voters"]] == [1, 2, 3]
    assert found["high_watermark"] <= max(voter["log_end_offset"] for voter in found["voters"])
    lines = run(bootstrap, "metadata", "quorum").splitlines()
    assert lines[0].split() == ["LEADER", str(controller)]
    assert sum(" leader " in line for line in lines) == 1
    assert sum(" voter " in line for line in lines) == 2


def test_what_the_shell_of_zookeeper_showed(start_cluster: StartCluster) -> None:
    cluster = start_cluster(1)
    cluster.create_topic("seen", partitions=2, replicas=1, retention_ms=5000)
    bootstrap = cluster.bootstrap
    assert run(bootstrap, "metadata", "ls", "/brokers/topics/seen/partitions").split() == ["0", "1"]
    assert run_json(bootstrap, "metadata", "ls", "/brokers/ids") == ["1"]
    state = run_json(bootstrap, "metadata", "get", "/brokers/topics/seen/partitions/1/state")
    assert state["leader"] == 1
    assert state["isr"] == [1]
    assert run_json(bootstrap, "metadata", "get", "/controller")["brokerid"] == 1
    assert run_json(bootstrap, "metadata", "get", "/config/topics/seen")["config"] == {"retention.ms": "5000"}
    assert run(bootstrap, "metadata", "get", "/brokers").strip() == "null"
    nodes = run_json(bootstrap, "metadata", "tree", "/brokers")
    assert next(iter(nodes)) == "/brokers"
    assert nodes["/brokers/topics/seen"]["partitions"] == {"0": [1], "1": [1]}
    lines = run(bootstrap, "metadata", "tree", "/brokers/ids").splitlines()
    assert lines[0] == "/brokers/ids"
    assert lines[1].startswith("  1  {")
    assert "/brokers/nothing" in run(bootstrap, "metadata", "get", "/brokers/nothing", exit_code=1)
