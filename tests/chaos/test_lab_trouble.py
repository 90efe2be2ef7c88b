"""Five brokers of the lab in trouble that takes longer than `make test` has time for."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_cluster import QUICK_SESSIONS, LabCluster, running_lab
from waiting import wait_until

ANSWER_TIMEOUT_S = 60


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[LabCluster]:
    with running_lab(tmp_path, QUICK_SESSIONS) as cluster:
        yield cluster


def test_acks_all_outlives_its_leader(lab: LabCluster) -> None:
    """The wait goes on at the next leader of the partition, when another broker than the lab's leader led it."""
    lab.create("moved", 5)
    leader = lab.leader()
    state = {number + 1: item.leader for number, item in lab.partitions("moved").items()}
    number, victim = next((number, node) for number, node in state.items() if node != leader)
    with lab.paused([next(node for node in lab.others(leader, victim))]):
        to_all = lab.producing(f"moved-{number}", "for all")
        wait_until(lambda: lab.stored_lines(leader, f"moved-{number}") == ["0 k for all"], "the others have it")
        lab.kill(victim)
    lab.start_broker(victim)
    assert to_all.result(ANSWER_TIMEOUT_S) == (204, None)
    assert lab.payloads(f"moved-{number}") == ["for all"]


def test_a_leader_that_nobody_elected_does_no_lasting_harm(lab: LabCluster) -> None:
    lab.create("unharmed")
    assert lab.produce("unharmed-1", "k", "p").status == 204
    leader = lab.leader()
    told, other = lab.others(leader)[:2]
    pids = {node_id: lab.pid(node_id) for node_id in lab.node_ids}
    for at, named in ((told, other), (told, told), (leader, other), (told, 99)):
        body = {"leader_id": str(named), "leader_epoch": lab.epoch() + 5}
        answer = lab.call("POST", at, "/kraft/v1/beginQuorumEpoch", body)
        assert answer.status < 500, answer
        lab.wait_for_brokers(lab.node_ids)
        lab.leader()
    assert {node_id: lab.pid(node_id) for node_id in lab.node_ids} == pids, "nobody has failed"
    assert lab.payloads("unharmed-1") == ["p"]
    assert lab.produce("unharmed-1", "k", "more").status == 204
