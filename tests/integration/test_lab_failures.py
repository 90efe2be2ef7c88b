"""Exercises 4.2.6 and 4.3.4 to 4.3.9: five brokers of the lab of which some are killed, paused, and started again."""

import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from lab_cluster import QUICK_SESSIONS, Answer, LabCluster, consume_body, running_lab, topic_body
from waiting import wait_until

STILL_WAITING_S = 0.8  # paused voters that come back sooner than their fetch timeout of 2 s start no election
FETCH_OVER_S = 1.2  # a fetch that waits at the leader would still carry what it writes to a paused follower
ANSWER_TIMEOUT_S = 30


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabCluster]:
    with running_lab(tmp_path_factory.mktemp("lab"), QUICK_SESSIONS) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def _whole(lab: LabCluster) -> Iterator[None]:
    """Each test leaves all five running, as it found them."""
    yield
    for node_id in set(lab.node_ids) - set(lab.running()):
        lab.start_broker(node_id, wait=False)
    lab.wait_for_brokers(lab.node_ids)
    lab.leader()


def assert_waits(request: "Future[Answer]") -> None:
    time.sleep(STILL_WAITING_S)  # the time in which nothing must happen
    assert not request.done(), request.result()


def fetch_metadata(lab: LabCluster, last_offset: int, last_offset_epoch: int, size: int = 100) -> Any:
    body = {
        "last_offset": last_offset,
        "last_offset_epoch": last_offset_epoch,
        "max_batch_size": size,
        "follower_broker_id": "9",
    }
    answer = lab.call("POST", lab.leader(), "/kraft/v1/fetchMetadata", body)
    assert answer.status == 200, answer
    return answer.body


def metadata_log_bytes(lab: LabCluster, node_id: int) -> bytes:
    (file,) = metadata_logs(lab, node_id)
    return file.read_bytes()


def metadata_logs(lab: LabCluster, node_id: int) -> list[Path]:
    return sorted((lab.home(node_id) / "metadata" / "__cluster_metadata-0").glob("*.log"))


# -- 4.2.6 acknowledgements


def test_acks_all_waits_for_a_dead_replica_until_it_is_back(lab: LabCluster) -> None:
    lab.create("awaited")
    victim = lab.others(lab.leader())[-1]
    lab.kill(victim)
    to_all = lab.producing("awaited-1", "for all")
    wait_until(lambda: lab.payloads("awaited-1") == ["for all"], "the leader and the living have it")
    assert lab.producing("awaited-1", "for the leader", "1").result(ANSWER_TIMEOUT_S).status == 204
    assert lab.producing("awaited-1", "for those in sync", "isr").result(ANSWER_TIMEOUT_S).status == 204
    assert_waits(to_all)
    lab.start_broker(victim, wait=False)
    assert to_all.result(ANSWER_TIMEOUT_S) == (204, None)
    stored = ["0 k for all", "1 k for the leader", "2 k for those in sync"]
    wait_until(lambda: lab.stored_lines(victim, "awaited-1") == stored, "it has caught up")


def test_a_follower_acknowledges_by_consuming(lab: LabCluster) -> None:
    """What it says over HTTP ends that wait, and nothing else: it is no real position of a replica."""
    lab.create("acknowledged")
    leader = lab.leader()
    victim = lab.others(leader)[-1]
    lab.kill(victim)
    to_all = lab.producing("acknowledged-1", "for all")
    wait_until(lambda: lab.payloads("acknowledged-1") == ["for all"], "the leader and the living have it")
    early = consume_body("acknowledged-1", -1) | {"follower_broker_id": str(victim)}
    assert lab.call("POST", leader, "/data/v1/consume", early).body["last_offset"] == 0
    assert_waits(to_all)
    caught_up = consume_body("acknowledged-1", 0) | {"follower_broker_id": str(victim)}
    assert lab.call("POST", leader, "/data/v1/consume", caught_up) == (200, {"last_offset": 0, "records": []})
    assert to_all.result(ANSWER_TIMEOUT_S) == (204, None)
    wait_until(
        lambda: victim not in lab.partitions("acknowledged")[0].isr, "the dead replica is not in sync", ANSWER_TIMEOUT_S
    )


# -- 4.3.5 to 4.3.7 the metadata log


def test_followers_fetch_the_metadata_log(lab: LabCluster) -> None:
    known = len(fetch_metadata(lab, -1, -1, 1000)["records"])
    lab.create("fetched1", 1)
    lab.create("fetched2", 2)
    assert lab.call("DELETE", lab.leader(), "/admin/v1/topics/fetched1").status == 204
    records = fetch_metadata(lab, -1, -1, 1000)["records"]
    assert [record["offset"] for record in records] == list(range(known + 3))
    created, other, deleted = records[known:]
    assert (created["action"], created["payload"]["topic_name"]) == ("create-topic", "fetched1")
    assert [part["id"] for part in other["payload"]["partitions"]] == ["fetched2-1", "fetched2-2"]
    assert (deleted["action"], deleted["payload"]) == ("delete-topic", {"topic_name": "fetched1"})
    behind = fetch_metadata(lab, created["offset"], created["epoch"], 1)
    assert behind == {"records": [other]}
    assert fetch_metadata(lab, deleted["offset"], deleted["epoch"]) == {"records": []}
    for node_id in lab.node_ids:
        wait_until(lambda at=node_id: len(lab.journal(at)) == known + 3, f"broker {node_id} has fetched them")


def test_a_log_that_does_not_fit_the_leaders_is_told_where(lab: LabCluster) -> None:
    lab.create("fitting")
    last = fetch_metadata(lab, -1, -1, 1000)["records"][-1]
    for offset, its_epoch in ((last["offset"] + 5, last["epoch"]), (last["offset"], last["epoch"] + 7)):
        answer = fetch_metadata(lab, offset, its_epoch)
        assert answer["records"] == []
        assert answer["diverging_epoch"] <= last["epoch"]
        assert answer["diverging_offset"] <= last["offset"] + 1


def test_a_change_waits_for_a_majority(lab: LabCluster) -> None:
    leader = lab.leader()
    followers = lab.others(leader)
    with lab.paused(followers[:2]):
        answer = lab.call("POST", leader, "/admin/v1/topics", topic_body("bythree", 1))
        assert answer.status == 201, "three of five are a majority"
    lab.wait_for_brokers(lab.node_ids)
    with lab.paused(followers[:3]):
        creating = lab.calling("POST", leader, "/admin/v1/topics", topic_body("bytwo", 1))
        assert_waits(creating)
        assert "bytwo" not in "".join(lab.journal(leader))
    assert creating.result(ANSWER_TIMEOUT_S).status == 201


def test_what_a_dead_leader_wrote_alone_is_truncated(lab: LabCluster) -> None:
    old_leader = lab.leader()
    rest = lab.others(old_leader)
    size = len(metadata_log_bytes(lab, old_leader))
    with lab.paused(rest):
        time.sleep(FETCH_OVER_S)
        lost = lab.calling("POST", old_leader, "/admin/v1/topics", topic_body("onlythere", 1))
        wait_until(lambda: b"onlythere" in metadata_log_bytes(lab, old_leader)[size:], "the leader has written it")
        lab.kill(old_leader)
    assert lost.exception(ANSWER_TIMEOUT_S) is not None or lost.result().status >= 500, "nobody is told that it is made"
    lab.wait_for_brokers(rest)
    lab.create("onlyhere")
    lab.start_broker(old_leader)
    wait_until(lambda: "onlyhere" in "".join(lab.journal(old_leader)), "it has what the others have")
    assert b"onlythere" not in metadata_log_bytes(lab, old_leader)
    assert "onlythere" not in lab.topic_names()
    assert lab.journal(old_leader) == lab.journal(rest[0])


# -- 4.3.2 votes, in a cluster that has a leader


def test_a_vote_over_http_is_a_real_one_and_the_cluster_heals(lab: LabCluster) -> None:
    lab.create("voted")
    voter = lab.follower()
    candidates = [str(node_id) for node_id in lab.others(voter)]
    last = fetch_metadata(lab, -1, -1, 1000)["records"][-1]
    wait_until(lambda: "voted" in lab.journal(voter)[-1], "the voter knows the topic")
    next_epoch = lab.epoch() + 10
    assert vote(lab, voter, next_epoch, candidates[0], last["offset"] - 1, last["epoch"])["granted"] is False
    assert vote(lab, voter, next_epoch, candidates[1], last["offset"], last["epoch"]) == {"granted": True}
    lab.kill(voter)
    lab.start_broker(voter, wait=False)
    wait_until(lambda: lab.answers_http(voter), "its HTTP server answers again", ANSWER_TIMEOUT_S)
    refused = vote(lab, voter, next_epoch, candidates[2], last["offset"], last["epoch"])
    assert refused["granted"] is False
    lab.wait_for_brokers(lab.node_ids)
    lab.create("healed")
    assert lab.epoch() >= next_epoch, "the vote has begun its epoch"


def vote(lab: LabCluster, voter: int, its_epoch: int, candidate: str, offset: int, offset_epoch: int) -> Any:
    body = {
        "candidate_epoch": its_epoch,
        "last_offset": offset,
        "last_offset_epoch": offset_epoch,
        "candidate_id": candidate,
    }
    return lab.call("POST", voter, "/kraft/v1/voteRequest", body).body


def test_a_leader_that_nobody_elected_does_no_lasting_harm(lab: LabCluster) -> None:
    lab.create("unharmed")
    assert lab.produce("unharmed-1", "k", "p").status == 204
    told, other = lab.others(lab.leader())[:2]
    body = {"leader_id": str(other), "leader_epoch": lab.epoch() + 5}
    assert lab.call("POST", told, "/kraft/v1/beginQuorumEpoch", body) == (200, {"accepted": True})
    lab.wait_for_brokers(lab.node_ids)
    assert lab.leader() in lab.node_ids
    assert lab.payloads("unharmed-1") == ["p"]
    assert lab.produce("unharmed-1", "k", "more").status == 204


# -- 4.3.8, 4.3.9 failures of brokers


def test_restarted_followers_change_no_leader(lab: LabCluster) -> None:
    leader, before = lab.leader(), lab.epoch()
    killed, stopped = lab.others(leader)[:2]
    lab.kill(killed)
    lab.stop_broker(stopped)
    lab.create("meanwhile")
    lab.produce("meanwhile-1", "k", "p", "1")
    lab.start_broker(killed)
    lab.start_broker(stopped)
    for node_id in (killed, stopped):
        wait_until(lambda at=node_id: lab.stored_lines(at, "meanwhile-1") == ["0 k p"], f"broker {node_id} caught up")
    assert (lab.leader(), lab.epoch()) == (leader, before)


def test_a_new_leader_has_everything_and_the_old_one_follows_it(lab: LabCluster) -> None:
    lab.create("survives", 3)
    for number in (1, 2, 3):
        for text in ("one", "two"):
            assert lab.produce(f"survives-{number}", "k", f"{text} of {number}").status == 204
    topics = lab.topic_names()
    old_leader = lab.leader()
    lab.kill(old_leader)
    new_leader = lab.leader()
    assert new_leader != old_leader
    assert lab.topic_names() == topics
    for number in (1, 2, 3):
        assert lab.payloads(f"survives-{number}") == [f"one of {number}", f"two of {number}"]
        assert lab.produce(f"survives-{number}", "k", "three", "1").status == 204
    before = lab.epoch()
    for node_id in lab.others(old_leader):
        state = lab.quorum_state(node_id)
        assert (state["leader_id"], state["leader_epoch"]) == (new_leader, before)
    lab.start_broker(old_leader)
    assert (lab.leader(), lab.epoch()) == (new_leader, before), "a deposed leader that comes back starts no election"
    for number in (1, 2, 3):
        lines = [f"0 k one of {number}", f"1 k two of {number}", "2 k three"]
        wait_until(
            lambda at=number, expected=lines: lab.stored_lines(old_leader, f"survives-{at}") == expected,
            f"the old leader has fetched partition {number}",
        )
