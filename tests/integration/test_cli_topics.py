"""The `sskafka topic` commands: what they print, pipes, signals and exit codes.

Commands that read a pipe, or that run beside a test, are processes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import run_sskafka

import sskafka
from sskafka.records.partitioner import partition_for_key

SSKAFKA = str(Path(sys.executable).with_name("sskafka"))
TIMEOUT_S = 30


class Cli:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._environment = {**os.environ, "SSKAFKA_BOOTSTRAP": bootstrap}

    def __call__(self, *arguments: str, stdin: str = "", exit_code: int = 0) -> str:
        """What the command printed; it must end with `exit_code`."""
        ended = self.ended(*arguments, stdin=stdin)
        assert ended.returncode == exit_code, ended.stderr
        return ended.stdout

    def ended(self, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        if not stdin:
            return run_sskafka("topic", *arguments, "-b", self._bootstrap)
        command = [SSKAFKA, "topic", *arguments]
        return subprocess.run(
            command, input=stdin, capture_output=True, text=True, env=self._environment, timeout=TIMEOUT_S, check=False
        )

    @contextmanager
    def start(self, *arguments: str) -> "Iterator[subprocess.Popen[bytes]]":
        """Run a command beside the test; a command that outlives its test is killed."""
        command = [SSKAFKA, "topic", *arguments]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(command, env=self._environment, **pipes) as process:
            try:
                yield process
            finally:
                process.kill()


@pytest.fixture
def cli(bootstrap: str) -> Cli:
    return Cli(bootstrap)


def test_the_life_of_a_topic(cli: Cli, topic: str) -> None:
    created = json.loads(cli("create", topic, "-p", "2", "-c", "retention.ms=1000000", "--format", "json"))
    assert [(one["name"], one["partitions"], one["replication_factor"]) for one in created] == [(topic, 2, 1)]
    assert topic in [one["name"] for one in json.loads(cli("list", "--format", "json"))]
    again = cli.ended("create", topic)
    assert again.returncode == 1
    assert f"sskafka topic describe {topic}" in again.stderr
    cli("create", "--topic", topic, "--if-not-exists")

    cli("alter", topic, "--partitions", "3", "--config", "segment.bytes=2000000", "--delete-config", "retention.ms")
    (described,) = json.loads(cli("describe", topic, "--format", "json"))
    assert described["topic_id"] == created[0]["topic_id"]
    assert [one["partition"] for one in described["partitions"]] == [0, 1, 2]
    configs = {one["name"]: one for one in described["configs"]}
    assert (configs["segment.bytes"]["value"], configs["segment.bytes"]["source"]) == (
        "2000000",
        "DYNAMIC_TOPIC_CONFIG",
    )
    assert configs["retention.ms"]["source"] != "DYNAMIC_TOPIC_CONFIG"

    assert "--yes" in cli.ended("delete", topic).stderr
    cli("delete", topic, "--yes")
    cli("delete", topic, "--yes", exit_code=1)
    cli("delete", topic, "--yes", "--if-exists")


def test_tables_for_people(cli: Cli, topic: str) -> None:
    assert cli("create", topic, "-p", "2", "-r", "1").splitlines()[0].split() == [
        "TOPIC",
        "PARTITIONS",
        "REPLICAS",
        "ID",
    ]
    assert [topic, "2", "1"] in [line.split() for line in cli("list").splitlines()]
    words = [line.split() for line in cli("describe", topic, "-s", "-p").splitlines()]
    assert ["NAME", topic] in words
    assert words[-1][0] == "1"
    assert ["CONFIGS"] not in words


def test_keys_headers_nulls_and_formats(cli: Cli, topic: str) -> None:
    cli("create", topic, "-p", "1")
    cli("produce", topic, "-f", r"%k\t%v", "-H", "h:1", "-Z", "-z", "zstd", stdin="a\tone\nb\ttwo\na\t\n")
    cli("produce", topic, "-k", "fixed", "--acks", "1", stdin="no newline at the end")
    out = cli("consume", topic, "-e", "-f", r"%t|%p|%o|%k|%v|%V|%h{%k=%v}\n")
    assert out.splitlines() == [
        f"{topic}|0|0|a|one|3|h=1",
        f"{topic}|0|1|b|two|3|h=1",
        f"{topic}|0|2|a||-1|h=1",
        f"{topic}|0|3|fixed|no newline at the end|21|",
    ]
    records = [json.loads(line) for line in cli("consume", topic, "-e", "--format", "json").splitlines()]
    assert records[2]["value"] is None
    assert records[0]["headers"] == [{"key": "h", "value": "1"}]
    assert records[0]["timestamp"] > 1_600_000_000_000


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_compression(cli: Cli, topic: str, compression: str) -> None:
    cli("create", topic, "-p", "1")
    lines = "".join(f"{number} {'x' * (number % 200)}\n" for number in range(2000))
    cli("produce", topic, "-z", compression, stdin=lines)
    assert cli("consume", topic, "-n", "2000") == lines
    assert cli("consume", topic, "-e", "--any-replica") == lines


def test_ranges_of_offsets_and_times(cli: Cli, topic: str) -> None:
    cli("create", topic, "-p", "1")
    cli("produce", topic, "-f", "%d %v", stdin="".join(f"{1_700_000_000_000 + i * 1000} v{i}\n" for i in range(10)))

    def read(offset: str, *options: str) -> list[str]:
        return cli("consume", topic, "-o", offset, *options).split()

    assert read("3:5") == ["v3", "v4"]
    assert read("-2", "-e") == ["v8", "v9"]
    assert read("+8", "-e") == ["v8", "v9"]
    assert read("@1700000003000:1700000005000") == ["v3", "v4"]
    assert read("@2023-11-14T22:13:27Z:end") == ["v7", "v8", "v9"]
    assert read(":2") == ["v0", "v1"]
    assert read("start", "-n", "2") == ["v0", "v1"]
    assert read("end", "-e") == []
    assert read("100", "-e") == []


@pytest.mark.usefixtures("_ours")
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_goes_on_after_what_was_printed(topic: str, protocol: str) -> None:
    with sskafka.Broker() as broker:
        broker.create_topic(topic)
        broker.produce(topic, *(f"v{number}" for number in range(10)))
        cli = Cli(broker.bootstrap_servers)
        read = ("consume", topic, "-g", "g", "-X", f"group.protocol={protocol}")
        assert cli(*read, "-n", "4") == "v0\nv1\nv2\nv3\n"
        assert cli(*read, "-e", "-f", "%o ") == "4 5 6 7 8 9 "
        assert cli(*read, "-e") == "", "everything is committed"
        assert cli("consume", topic, "-g", "new", "-o", "end", "-e") == ""


@pytest.mark.usefixtures("_ours")
@pytest.mark.parametrize(("end", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_member_that_is_stopped_leaves_the_group(topic: str, end: signal.Signals, exit_code: int) -> None:
    with sskafka.Broker() as broker:
        broker.create_topic(topic)
        broker.produce(topic, "a")
        cli = Cli(broker.bootstrap_servers)
        with cli.start("consume", topic, "-g", "g") as member:
            assert member.stdout is not None
            assert member.stdout.readline() == b"a\n"
            member.send_signal(end)
            _, talk = member.communicate(timeout=TIMEOUT_S)
        assert (member.returncode, talk) == (exit_code, b"")
        broker.produce(topic, "b")
        with sskafka.Consumer(broker.bootstrap_servers, group_id="g") as other:
            other.subscribe(topic)
            assert other.poll(timeout_ms=10_000), "well before the session timeout of 45 s"


def test_options_that_a_group_decides_are_refused(cli: Cli, topic: str) -> None:
    cli("create", topic)
    for options, reason in (
        (["-p", "0"], "the group assigns the partitions"),
        (["-o", "3"], "use start or end"),
        (["-X", "group.protocol=new"], "classic, consumer"),
        (["-X", "partition.assignment.strategy=new"], "range, roundrobin, cooperative-sticky"),
    ):
        ended = cli.ended("consume", topic, "-g", topic, *options)
        assert ended.returncode == 2, ended.stderr
        assert reason in ended.stderr
    assert "there is no topic" in cli.ended("consume", f"{topic}-missing", "-g", topic).stderr


def test_deliveries_are_told_when_asked_for(cli: Cli, topic: str) -> None:
    cli("create", topic, "-p", "3")
    assert cli("produce", topic, "-p", "2", "--report", stdin="a\nb\n") == "2 0\n2 1\n"
    (told,) = [
        json.loads(line) for line in cli("produce", topic, "-k", "k", "--format", "json", stdin="x\n").splitlines()
    ]
    assert (told["topic"], told["partition"]) == (topic, partition_for_key(b"k", 3))


def test_following_prints_what_comes_and_ends_with_130(cli: Cli, topic: str) -> None:
    cli("create", topic, "-p", "1")
    with cli.start("consume", topic) as follower:
        assert follower.stdout is not None
        for word in ("one", "two"):
            cli("produce", topic, stdin=word + "\n")
            assert follower.stdout.readline() == word.encode() + b"\n"
        follower.send_signal(signal.SIGINT)
        _, talk = follower.communicate(timeout=TIMEOUT_S)
        assert follower.returncode == 130
        assert talk == b""


def test_typing_is_delivered_line_by_line_and_can_be_interrupted(cli: Cli, topic: str) -> None:
    cli("create", topic, "-p", "1")
    with cli.start("produce", topic) as typist:
        assert typist.stdin is not None
        typist.stdin.write(b"typed\n")
        typist.stdin.flush()
        assert cli("consume", topic, "-n", "1") == "typed\n"
        typist.send_signal(signal.SIGINT)
        assert typist.wait(TIMEOUT_S) == 130


def test_a_broken_pipe_is_silent(cli: Cli, topic: str) -> None:
    cli("create", topic, "-p", "1")
    cli("produce", topic, stdin="".join(f"{'x' * 1000}\n" for _ in range(1000)))
    with cli.start("consume", topic) as consumer:
        assert consumer.stdout is not None
        consumer.stdout.readline()
        consumer.stdout.close()
        cli("produce", topic, stdin="more\n")
        assert consumer.stderr is not None
        assert consumer.stderr.read() == b""
        assert consumer.wait(TIMEOUT_S) == 0


def test_failures_name_the_next_command(cli: Cli, topic: str) -> None:
    for arguments in (["consume", topic], ["produce", topic], ["describe", topic]):
        ended = cli.ended(*arguments, stdin="x\n")
        assert ended.returncode == 1
        assert f"there is no topic '{topic}'" in ended.stderr
        assert "sskafka topic list" in ended.stderr or "did you mean" in ended.stderr
        assert ended.stdout == ""
    bad = cli.ended("create", topic, "-c", "retention.sm=5")
    assert bad.returncode == 1
    assert "retention.sm" in bad.stderr
    assert "did you mean retention.ms?" in bad.stderr
    assert cli.ended("produce", topic, stdin="").returncode == 1, "also if there is nothing to produce"


def test_missing_topics_are_created_when_allowed(cli: Cli, new_topic: Callable[[str], str]) -> None:
    topic = new_topic("auto")
    cli("produce", topic, "--allow-auto-topic-creation", stdin="x\n")
    assert cli("consume", topic, "-e") == "x\n"
