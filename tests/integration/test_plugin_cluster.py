"""The fixture `sskafka_cluster` of the pytest plugin."""

import re
from pathlib import Path

import confluent_kafka
import pytest

from sskafka.testing import StartCluster
from sskafka.testing.process_cluster import ProcessCluster

pytest_plugins = ["pytester"]


def test_records_survive_the_death_of_their_leader(sskafka_cluster: StartCluster) -> None:
    cluster = sskafka_cluster(3)
    cluster.create_topic("orders", replication_factor=3)
    cluster.produce("orders", "3 apples")
    leader = cluster.leader("orders")
    cluster.kill(leader)
    assert cluster.running() == [node for node in (1, 2, 3) if node != leader]
    cluster.produce("orders", "2 pears")
    assert [record.value for record in cluster.consume("orders")] == [b"3 apples", b"2 pears"]
    cluster.start_broker(leader)
    cluster.wait_for_isr("orders", [1, 2, 3])


def test_a_paused_broker_answers_again(sskafka_cluster: StartCluster) -> None:
    cluster = sskafka_cluster(1)
    cluster.create_topic("orders")
    cluster.pause(1)
    with pytest.raises(TimeoutError):
        cluster.consume("orders", 1, timeout_s=0.3)
    cluster.resume(1)
    cluster.produce("orders", "3 apples")
    assert len(cluster.consume("orders", 1)) == 1


def test_a_secure_cluster(sskafka_cluster: StartCluster) -> None:
    cluster = sskafka_cluster(1, secure=True)
    cluster.produce("orders", "3 apples")
    assert [record.value for record in cluster.consume("orders")] == [b"3 apples"]
    stranger = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    stranger.produce("orders", b"1 plum")
    assert stranger.flush(0.5) == 1, "a producer without TLS and a login must not be served"
    stranger.purge()


def test_closing_ends_the_processes_and_removes_the_directory() -> None:
    cluster = ProcessCluster(1).start()
    assert cluster.is_running(1)
    directory = cluster.directory
    cluster.close()
    assert not cluster.is_running(1)
    assert not directory.exists()
    with pytest.raises(RuntimeError, match="not running"):
        cluster.pid(1)


def test_a_start_that_fails_shows_the_logs(sskafka_cluster: StartCluster) -> None:
    with pytest.raises(RuntimeError, match=r"num\.partitions"):
        sskafka_cluster(1, {"num.partitions": "many"})


PAGE = Path(__file__).resolve().parents[2] / "docs" / "testing.md"


@pytest.mark.parametrize("number", range(4))
def test_examples_of_the_page(number: int, pytester: pytest.Pytester) -> None:
    examples = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(examples) == 4
    pytester.makepyfile(examples[number])
    pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider").assert_outcomes(passed=1)
