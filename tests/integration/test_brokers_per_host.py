"""`sskafka start --brokers-per-host`: several brokers of one machine, as operators see them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from waiting import wait_until

from sskafka.cli.host.directories import partitions_in

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("_ours")]

SSKAFKA = str(Path(sys.executable).with_name("sskafka"))
TIMEOUT_S = 60


class Host:
    """A machine with several brokers."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.bootstrap = ""
        self._process: subprocess.Popen[str] | None = None

    @property
    def data(self) -> Path:
        return self.directory / "sskafka-data" / "data"

    @property
    def talk(self) -> str:
        return (self.directory / "talk.log").read_text(errors="replace")

    def command(self, count: int | None) -> list[str]:
        ports = ("listeners=PLAINTEXT://127.0.0.1:0", "http.listener=", "adr.listener=")
        options = [word for port in ports for word in ("--set", port)]
        return [SSKAFKA, "start", *options, *([] if count is None else ["--brokers-per-host", str(count)])]

    def start(self, count: int | None) -> "Host":
        with (self.directory / "talk.log").open("ab") as talk:
            self._process = subprocess.Popen(
                self.command(count), cwd=self.directory, stdout=subprocess.PIPE, stderr=talk, text=True
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith("READY bootstrap="), self.talk
        self.bootstrap = line.split()[1].removeprefix("bootstrap=")
        return self

    def refusal(self, count: int | None) -> str:
        ended = subprocess.run(
            self.command(count), cwd=self.directory, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        assert (ended.returncode, ended.stdout) == (1, ""), ended
        assert "Traceback" not in ended.stderr
        return ended.stderr

    @property
    def process(self) -> "subprocess.Popen[str]":
        assert self._process is not None
        return self._process

    def pid(self, node_id: int) -> int:
        return int((self.data / "brokers" / str(node_id) / "broker.pid").read_text())

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        rest, _ = self.process.communicate(timeout=TIMEOUT_S)
        assert rest == "", "READY is printed once"
        return self.process.returncode

    def close(self) -> None:
        if self._process is not None and self._process.stdout is not None and not self._process.stdout.closed:
            self._process.kill()
            self._process.communicate(timeout=TIMEOUT_S)

    def sskafka(self, *words: str, exit_codes: tuple[int, ...] = (0,)) -> str:
        done = subprocess.run(
            [SSKAFKA, *words, "-b", self.bootstrap], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        assert done.returncode in exit_codes, done
        return done.stdout

    def status(self) -> Any:
        return json.loads(self.sskafka("cluster", "status", "--format", "json", exit_codes=(0, 3)))

    def leaders(self, topic: str) -> list[int]:
        found = AdminClient({"bootstrap.servers": self.bootstrap}).list_topics(topic, timeout=TIMEOUT_S)
        return [partition.leader for _, partition in sorted(found.topics[topic].partitions.items())]

    def is_alive(self, node_id: int) -> bool:
        return {broker["node_id"]: not broker["is_fenced"] for broker in self.status()["brokers"]}.get(node_id, False)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    found = Host(tmp_path)
    try:
        yield found
    finally:
        found.close()


def write(host: Host, topic: str, partitions: int) -> None:
    """Write the number of the partition to each partition."""
    producer = Producer({"bootstrap.servers": host.bootstrap, "acks": "all"})
    for number in range(partitions):
        producer.produce(topic, str(number).encode(), partition=number)
    assert producer.flush(TIMEOUT_S) == 0


def read(host: Host, topic: str, partitions: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": host.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        messages = consumer.consume(partitions, TIMEOUT_S)
        return sorted(value for message in messages if (value := message.value()) is not None)
    finally:
        consumer.close()


def has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def test_two_brokers_as_one_machine(host: Host) -> None:
    host.start(2)
    assert len(host.bootstrap.split(",")) == 2
    assert int((host.data.parent / "broker.pid").read_text()) == host.process.pid
    host.sskafka("topic", "create", "t", "-p", "8")
    described = host.status()
    assert [broker["node_id"] for broker in described["brokers"]] == [1, 1001]
    assert len({broker["rack"] for broker in described["brokers"]}) == 1
    assert [voter["node_id"] for voter in described["quorum"]["voters"]] == [1]
    (machine,) = described["machines"]
    assert machine["broker_ids"] == [1, 1001]
    assert [broker["leaders"] for broker in described["brokers"]] == [4, 4]
    assert "MACHINE" in host.sskafka("cluster", "status")
    write(host, "t", 8)
    assert read(host, "t", 8) == [b"0", b"1", b"2", b"3", b"4", b"5", b"6", b"7"]
    members = [host.pid(node_id) for node_id in (1, 1001)]
    assert host.stop() == 0, host.talk
    assert all(map(has_ended, members))
    for directory in (host.data, host.data / "brokers" / "1001"):
        assert (directory / ".kafka_cleanshutdown").exists(), host.talk
        assert not (directory / "broker.pid").exists()
    assert not (host.data.parent / "broker.pid").exists()
    assert "Traceback" not in host.talk


def test_a_killed_broker_is_started_again(host: Host) -> None:
    host.start(2)
    host.sskafka("topic", "create", "t", "-p", "2")
    write(host, "t", 2)
    for node_id in (1001, 1):  # the second one is the only voter
        victim = host.pid(node_id)
        os.kill(victim, signal.SIGKILL)
        again = f"broker {node_id} is ready again"
        wait_until(lambda again=again: again in host.talk, again, TIMEOUT_S)
        assert host.pid(node_id) != victim
        assert f"broker {node_id} (process {victim}) was killed by SIGKILL" in host.talk
    wait_until(lambda: host.is_alive(1) and host.is_alive(1001), "both brokers are unfenced", TIMEOUT_S)
    assert read(host, "t", 2) == [b"0", b"1"]
    members = [host.pid(node_id) for node_id in (1, 1001)]
    host.process.kill()
    wait_until(lambda: all(map(has_ended, members)), "the brokers stop when their supervisor dies", TIMEOUT_S)
    assert (host.data / ".kafka_cleanshutdown").exists(), host.talk
    assert (host.data / "brokers" / "1001" / ".kafka_cleanshutdown").exists(), host.talk


def test_growing_and_shrinking(host: Host) -> None:
    host.start(None)
    host.sskafka("topic", "create", "old", "-p", "2")
    write(host, "old", 2)
    assert host.stop() == 0
    host.start(2)
    assert read(host, "old", 2) == [b"0", b"1"]
    host.sskafka("topic", "create", "new", "-p", "2")
    assert sorted(host.leaders("new")) == [1, 1001]
    assert host.leaders("old") == [1, 1]
    assert host.stop(signal.SIGINT) == 130
    for count in (None, 1):
        refused = host.refusal(count)
        assert "broker 1001 of this machine holds " in refused
        assert "sskafka broker decommission 1001 --wait 0" in refused
    host.start(2)
    host.sskafka("broker", "decommission", "1001", "--wait", "0", "--yes", "--allow-fewer-replicas")
    wait_until(lambda: host.status()["brokers"][1]["replicas"] == 0, "1001 is empty", TIMEOUT_S)
    wait_until(lambda: host.leaders("new") == [1, 1], "1 leads all")
    directory = host.data / "brokers" / "1001"
    wait_until(lambda: partitions_in(directory) == 0, "its files are set aside")
    assert host.stop() == 0
    host.start(1)
    assert "broker 1001 of this machine holds no partitions and is not started" in host.talk
    host.sskafka("cluster", "unregister", "1001", "--yes")
    assert [broker["node_id"] for broker in host.status()["brokers"]] == [1]
    assert host.stop() == 0


def test_a_broker_that_cannot_start_stops_the_others(host: Host) -> None:
    blocked = host.data / "brokers" / "1001"
    blocked.parent.mkdir(parents=True)
    blocked.write_text("a file where a directory must be")
    refused = host.refusal(2)
    assert "broker 1001" in refused
    assert "before all brokers of the machine were ready" in refused
    assert not (host.data.parent / "broker.pid").exists()
