"""Exercises 4.1.5 to 4.1.7, 4.2.4 and 4.2.5: the lab's scripts on five brokers, also while their leader dies."""

import json
import queue
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from lab_cluster import QUICK_SESSIONS, LabCluster, partition_list, run, running_lab, script_command
from waiting import wait_until

LINE_TIMEOUT_S = 30
CREATED = """{
    "topic_name": "mynewtopic",
    "partitions": [
        {
            "id": "mynewtopic-1",
            "replica_brokers": ["1", "2", "3", "4", "5"]
        },
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabCluster]:
    with running_lab(tmp_path_factory.mktemp("lab"), QUICK_SESSIONS) as cluster:
        yield cluster


class Script:
    """A script that runs while the test goes on; its output is read line by line."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        assert process.stdin is not None
        self.process = process
        self._stdin = process.stdin
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, args=(process.stdout,))
        self._reader.start()

    def _read(self, stdout: Iterator[str]) -> None:
        for line in stdout:
            self._lines.put(line.rstrip("\n"))

    def enter(self, *lines: str) -> None:
        self._stdin.write("".join(f"{line}\n" for line in lines))
        self._stdin.flush()

    def line(self) -> str:
        """The next one that is not empty."""
        while not (line := self._lines.get(timeout=LINE_TIMEOUT_S)):
            pass
        return line

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        self._stdin.close()


@contextmanager
def running(lab: LabCluster, name: str, *arguments: str) -> Iterator[Script]:
    command = script_command(name, *arguments, "-b", lab.broker_list)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        script = Script(process)
        try:
            yield script
        finally:
            script.close()


def test_create_list_and_delete_topics(lab: LabCluster) -> None:
    created = lab.script("create_topic", "mynewtopic", "-p", "4", "-r", "1")
    assert created.returncode == 0
    assert json.loads(created.stdout) == {"topic_name": "mynewtopic", "partitions": partition_list("mynewtopic", 4)}
    assert created.stdout.startswith(CREATED)
    other = lab.script("create_topic", "myothernewtopic")
    assert len(json.loads(other.stdout)["partitions"]) == 3
    listed = lab.script("list_topics")
    assert listed.returncode == 0
    assert json.loads(listed.stdout) == {"topics": [json.loads(created.stdout), json.loads(other.stdout)]}
    deleted = lab.script("delete_topic", "mynewtopic")
    assert (deleted.returncode, deleted.stdout) == (0, "")
    assert lab.topic_names() == ["myothernewtopic"]


def test_what_the_api_refuses_is_printed_and_ends_with_1(lab: LabCluster) -> None:
    lab.create("twice")
    again = lab.script("create_topic", "twice")
    assert again.returncode == 1
    assert json.loads(again.stdout) == {"detail": "topic twice already exists"}
    assert lab.script("create_topic", "with-dash").returncode == 1
    missing = lab.script("delete_topic", "nowhere")
    assert missing.returncode == 1
    assert json.loads(missing.stdout)["detail"]
    assert lab.script("consume", "nowhere-1").returncode == 1
    unpublished = lab.script("produce", "nowhere", stdin="k\np\n\n")
    assert (unpublished.returncode, "> OK" in unpublished.stdout) == (1, False)


def test_the_first_broker_of_the_list_need_not_lead(lab: LabCluster) -> None:
    lab.create("turned")
    leader = lab.leader()
    turned = [*(node for node in lab.node_ids if node != leader), leader]
    listed = run(script_command("list_topics", "-b", lab.broker_list_of(turned)))
    assert listed.returncode == 0
    assert "turned" in [topic["topic_name"] for topic in json.loads(listed.stdout)["topics"]]


def test_produce_asks_until_an_empty_line(lab: LabCluster) -> None:
    lab.create("asked", 3)
    entered = "".join(f"key{number}\nmessage {number}\n" for number in range(6))
    done = lab.script("produce", "asked", stdin=f"{entered}\n")
    assert done.returncode == 0
    assert done.stdout == "Key: Payload: > OK\n\n" * 6 + "Key: "
    stored = [payload for number in (1, 2, 3) for payload in lab.payloads(f"asked-{number}")]
    assert sorted(stored) == [f"message {number}" for number in range(6)]
    assert len([number for number in (1, 2, 3) if lab.payloads(f"asked-{number}")]) > 1, "keys choose the partition"


@pytest.mark.parametrize("acks", ["all", "1", "0"])
def test_produce_with_every_kind_of_acknowledgement(lab: LabCluster, acks: str) -> None:
    lab.create(f"acks{acks}")
    done = lab.script("produce", f"acks{acks}", "-a", acks, stdin="k\np\n\n")
    assert (done.returncode, done.stdout.count("> OK")) == (0, 1)
    wait_until(lambda: lab.payloads(f"acks{acks}-1") == ["p"], "the record is there")


def test_consume_prints_records_as_they_come(lab: LabCluster) -> None:
    lab.create("watched")
    lab.produce("watched-1", "msg1", "my first message")
    with running(lab, "consume", "watched-1", "-s", "1") as consumer:
        assert consumer.line() == "[0] [msg1] my first message"
        for number in (1, 2, 3):
            lab.produce("watched-1", f"key{number}", f"payload {number}", "1")
            assert consumer.line() == f"[{number}] [key{number}] payload {number}"
        consumer.process.send_signal(signal.SIGINT)
        assert consumer.process.wait(10) == 0


def test_produce_and_consume_live_through_a_change_of_leader(lab: LabCluster) -> None:
    lab.create("kept")
    leader = lab.leader()
    with running(lab, "consume", "kept-1") as consumer, running(lab, "produce", "kept", "-a", "1") as producer:
        producer.enter("k", "before")
        assert producer.line().endswith("> OK")
        assert consumer.line() == "[0] [k] before"
        lab.kill(leader)
        producer.enter("k", "while nobody leads")
        assert producer.line().endswith("> OK")
        assert consumer.line() == "[1] [k] while nobody leads"
        assert lab.leader() != leader
        lab.start_broker(leader)
        producer.enter("k", "after", "")
        assert producer.line().endswith("> OK")
        assert producer.process.wait(10) == 0
        assert consumer.line() == "[2] [k] after"
        consumer.process.send_signal(signal.SIGINT)
        assert consumer.process.wait(10) == 0
