"""The lab's scripts against brokers that behave badly: what they send again, and when they give up."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from lab_broker import NO_ANSWER, LabBroker
from lab_cluster import CLIENT, run, script_command

from sskafka.records.partitioner import partition_for_key

TOPICS = {"topics": [{"topic_name": "t", "partitions": [{"id": f"t-{number}"} for number in (1, 2, 3)]}]}
PRODUCE, CONSUME, CREATE = "POST /data/v1/produce", "POST /data/v1/consume", "POST /admin/v1/topics"
LOOKING_SECONDS_MAX = 10
STARTING_SECONDS_MAX = 5  # of Python and its imports on a busy machine

Brokers = Callable[[int], list[LabBroker]]


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    """Three brokers of which the given one leads."""
    with ExitStack() as stack:

        def start(leader_id: int) -> list[LabBroker]:
            return [stack.enter_context(LabBroker(number, leader_id).serving()) for number in (1, 2, 3)]

        yield start


def broker_list(brokers: list[LabBroker]) -> str:
    return ",".join(broker.entry for broker in brokers)


def test_a_key_lands_where_kafka_clients_put_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(CLIENT))
    from partitioner import partition_number

    for key in ("", "a", "ab", "abc", "abcd", "key-17", "größer", "日本", "x" * 100):
        for count in (1, 3, 7):
            assert partition_number(key, count) == partition_for_key(key.encode(), count) + 1


def test_a_follower_sends_the_script_to_the_leader(brokers: Brokers) -> None:
    cluster = brokers(3)
    cluster[2].routes[CREATE] = lambda body: (201, {"topic_name": body["topic_name"], "partitions": []})
    done = run(script_command("create_topic", "t", "-r", "2", "-b", broker_list(cluster)))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == '{\n    "topic_name": "t",\n    "partitions": []\n}\n'
    assert cluster[2].requests[-1] == (CREATE, {"topic_name": "t", "partition_count": 3})
    assert [broker.count(CREATE) for broker in cluster] == [1, 0, 1]


def test_who_does_not_answer_is_passed_over(brokers: Brokers) -> None:
    cluster = brokers(2)
    cluster[0].stop()
    cluster[1].routes["GET /admin/v1/topics"] = lambda _: (200, TOPICS)
    assert run(script_command("list_topics", "-b", broker_list(cluster))).returncode == 0


def test_a_leader_that_is_not_listed_is_looked_for_and_given_up(brokers: Brokers) -> None:
    elsewhere, nowhere, silent = brokers(9), brokers(-1), brokers(1)
    for broker in silent:
        broker.stop()
    began = time.monotonic()
    with ThreadPoolExecutor(3) as threads:  # they take their time
        commands = [script_command("list_topics", "-b", broker_list(item)) for item in (elsewhere, nowhere, silent)]
        ended = list(threads.map(run, commands))
    assert time.monotonic() - began < LOOKING_SECONDS_MAX + STARTING_SECONDS_MAX
    assert [script.returncode for script in ended] == [1, 1, 1]
    assert "leader is 9, can't accept" in ended[0].stdout
    assert "leader is -1, can't accept" in ended[1].stdout
    assert "no leader found among 1@127.0.0.1" in ended[2].stdout
    assert elsewhere[0].count("GET /healthcheck") > 10, "it has looked more than once"


def test_an_unclear_produce_is_not_repeated(brokers: Brokers) -> None:
    (leader, *_) = cluster = brokers(1)
    leader.routes["GET /admin/v1/topics"] = lambda _: (200, TOPICS)
    leader.routes[PRODUCE] = lambda _: (NO_ANSWER, None)
    done = run(script_command("produce", "t", "-a", "1", "-b", broker_list(cluster)), "k\npayload\nk\nmore\n\n")
    assert done.returncode == 1
    assert leader.count(PRODUCE) == 1
    assert "> OK" not in done.stdout
    assert "unknown whether" in done.stderr


def test_produce_waits_for_a_partition_without_a_leader(brokers: Brokers) -> None:
    (leader, *_) = cluster = brokers(1)
    leader.routes["GET /admin/v1/topics"] = lambda _: (200, TOPICS)
    leader.routes[PRODUCE] = lambda _: (503, {"detail": "not yet"}) if leader.count(PRODUCE) < 4 else (204, None)
    done = run(script_command("produce", "t", "-b", broker_list(cluster)), "k\npayload\n\n")
    assert (done.returncode, done.stdout) == (0, "Key: Payload: > OK\n\nKey: ")
    assert leader.count(PRODUCE) == 4


def test_consume_goes_on_where_it_was(brokers: Brokers) -> None:
    """Lost answers are asked for again, at another leader if need be: nothing is printed twice, nothing left out."""
    (first, second, _) = cluster = brokers(1)
    log = [{"offset": number, "key": "k", "payload": f"p{number}"} for number in range(6)]
    consumed_at_first: list[int] = []

    def read(body: dict[str, int], size: int = 2) -> tuple[int, object]:
        found = log[body["last_offset"] + 1 :][:size]
        return 200, {"last_offset": found[-1]["offset"] if found else body["last_offset"], "records": found}

    def read_and_die(body: dict[str, int]) -> tuple[int, object]:
        consumed_at_first.append(body["last_offset"])
        if len(consumed_at_first) == 1:
            return read(body)
        if len(consumed_at_first) > 2:
            for broker in cluster:
                broker.leader_id = 2
        return NO_ANSWER, None

    first.routes[CONSUME] = read_and_die
    second.routes[CONSUME] = read
    command = script_command("consume", "t-1", "-s", "7", "-b", broker_list(cluster))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as script:
        assert script.stdout is not None
        assert [script.stdout.readline() for _ in log] == [f"[{number}] [k] p{number}\n" for number in range(6)]
        script.send_signal(signal.SIGINT)
        assert script.wait(10) == 0
    assert consumed_at_first == [-1, 1, 1]
    assert all(body["max_batch_size"] == 7 for route, body in second.requests if route == CONSUME)


def test_a_consumer_in_the_background_leaves_on_sigint_too(brokers: Brokers) -> None:
    """Shells start background commands with SIGINT ignored."""
    (leader, *_) = cluster = brokers(1)
    record = {"offset": 0, "key": None, "payload": "p"}
    leader.routes[CONSUME] = lambda _: (200, {"last_offset": 0, "records": [record]})
    ignoring = "import os,signal,sys; signal.signal(2, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    command = [sys.executable, "-c", ignoring, *script_command("consume", "t-1", "-b", broker_list(cluster))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as script:
        assert script.stdout is not None
        assert script.stdout.readline() == "[0] [] p\n"
        script.send_signal(signal.SIGINT)
        script.stdout.read()
        assert script.wait(10) == 0


def test_a_consumer_whose_reader_has_left_is_silent(brokers: Brokers) -> None:
    (leader, *_) = cluster = brokers(1)
    record = {"offset": 0, "key": "k", "payload": "p"}
    leader.routes[CONSUME] = lambda _: (200, {"last_offset": 0, "records": [record]})
    command = script_command("consume", "t-1", "-b", broker_list(cluster))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as script:
        assert script.stdout is not None
        assert script.stderr is not None
        assert script.stdout.readline() == "[0] [k] p\n"
        script.stdout.close()
        assert (script.wait(10), script.stderr.read()) == (0, "")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("create_topic", ["t", "-p", "many"]),
        ("create_topic", []),
        ("produce", ["t", "-a", "2"]),
        ("list_topics", ["-b", "localhost:8001"]),
        ("consume", ["t-1", "-s", "x"]),
    ],
)
def test_wrong_arguments_end_with_1(name: str, arguments: list[str]) -> None:
    done = run(script_command(name, *arguments))
    assert done.returncode == 1
    assert "error:" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_scripts_need_no_more_than_their_requirements() -> None:
    """They run in an environment that has neither this project nor anything else of it."""
    allowed = {"httpx", "brokers", "partitioner", *sys.stdlib_module_names}
    for file in CLIENT.glob("*.py"):
        imported = {line.split()[1].split(".")[0] for line in file.read_text().splitlines() if is_import(line)}
        assert imported <= allowed, file
    requirements = (CLIENT / "requirements.txt").read_text().split()
    assert [line.split(">")[0] for line in requirements] == ["httpx"]


def is_import(line: str) -> bool:
    return line.startswith(("import ", "from "))


def test_all_scripts_are_there() -> None:
    names = {file.name for file in Path(CLIENT).iterdir() if file.is_file()}
    assert names >= {"create_topic.py", "list_topics.py", "delete_topic.py", "produce.py", "consume.py"}
    assert "requirements.txt" in names
