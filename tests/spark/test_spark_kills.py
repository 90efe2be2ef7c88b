"""Pipelines whose processes and brokers are killed: Parquet, Delta and topics hold each record once in the end."""

import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster_processes import ClusterProcesses
from pipeline_process import SSKAFKA, Copying
from process_session import ProcessSession
from test_spark_source import numbers as numbers_between

from sskafka.client.coordinators import CoordinatorType, coordinator_of
from sskafka.pipelines.connector.planning import ClusterSession

NOBODY = "127.0.0.1:9"
PARTITIONS = 2
SETTINGS = {
    "min.insync.replicas": 2,
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
    "broker.heartbeat.interval.ms": 500,
    "broker.session.timeout.ms": 3_000,
}
OUTAGE_OPTIONS = {"kafka.default.api.timeout.ms": 20_000, "kafkaConsumer.pollTimeoutMs": 20_000}
ENDS_WITHIN_S = 120
BROKERS_BACK_WITHIN_S = 120
SECONDS_MAX = 1_800
"""A test starts Spark four or five times; on a busy machine that alone takes ten minutes."""
SUPERSEDED = ("has taken over", "Multiple streaming queries", "Race while writing", "Concurrent transaction")
"""How a run hears that a newer one is there: from topics or events, from Spark's logs, from Delta."""


@pytest.fixture(scope="module")
def own_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcesses]:
    """Brokers that may be killed: other tests have those that live."""
    cluster = ClusterProcesses(tmp_path_factory.mktemp("mortal"), 3, SETTINGS)
    try:
        yield cluster.start()
    finally:
        cluster.close()


@pytest.fixture(scope="module")
def bootstrap(own_brokers: ClusterProcesses) -> str:
    return own_brokers.bootstrap


class Numbers:
    """The source; it counts on with every call."""

    def __init__(self, topic: str, produce: Callable[..., None]) -> None:
        self._produce = produce
        self.topic = topic
        self.count = 0

    def add(self, count: int) -> None:
        each = count // PARTITIONS
        for partition in range(PARTITIONS):
            self._produce(self.topic, numbers_between(self.count, self.count + each), partition)
            self.count += each

    def wait_for_a_batch_under_way(self, copying: Copying) -> None:
        copying.wait_for_a_batch_under_way(lambda: self.count, self.add)


@pytest.fixture
def numbers(new_topic: Callable[..., str], produce: Callable[..., None]) -> Numbers:
    return Numbers(new_topic(PARTITIONS, "numbers"), produce)


@pytest.fixture
def new_copying(numbers: Numbers, bootstrap: str, tmp_path: Path) -> Iterator[Callable[..., Copying]]:
    made: list[Copying] = []

    def make(**options: object) -> Copying:
        made.append(Copying(tmp_path, bootstrap, numbers.topic, **options))
        return made[-1]

    yield make
    for copying in made:
        copying.close()


@pytest.mark.timeout(SECONDS_MAX)
def test_a_driver_is_killed_then_java_then_a_run_is_paused_and_wakes_up_too_late(
    new_copying: Callable[..., Copying], numbers: Numbers
) -> None:
    copying = new_copying()
    numbers.add(3_000)
    killed = copying.start()
    numbers.wait_for_a_batch_under_way(copying)
    killed.kill_driver()
    killed.wait_until_gone()

    without_java = copying.start()
    numbers.wait_for_a_batch_under_way(copying)
    without_java.kill_java()
    assert without_java.wait() == 1, without_java.talk()
    assert "error: the Java process of Spark was ended by signal 9" in without_java.talk()
    without_java.wait_until_gone()

    paused = copying.start()
    numbers.wait_for_a_batch_under_way(copying)
    paused.send(signal.SIGSTOP)
    copying.complete()
    copying.assert_each_once(numbers.count)
    paused.send(signal.SIGCONT)
    assert paused.wait() == 1, paused.talk()
    last_word = last_error(paused)
    assert any(text in last_word for text in SUPERSEDED), last_word
    paused.wait_until_gone()
    copying.assert_each_once(numbers.count, parquet_by_lists=True)  # what it wrote too late, the next run takes away


@pytest.mark.timeout(SECONDS_MAX)
def test_leaders_are_killed_and_the_run_goes_on_until_all_brokers_are_gone_for_long(
    new_copying: Callable[..., Copying], numbers: Numbers, own_brokers: ClusterProcesses, session: ClusterSession
) -> None:
    copying = new_copying(**OUTAGE_OPTIONS)
    numbers.add(400)
    run = copying.start()
    copying.wait_for(numbers.count)

    def coordinator() -> int:
        session.cluster.coordinators.clear()  # one that was killed is no coordinator any more
        return session.run(coordinator_of(session.cluster, CoordinatorType.TRANSACTION, copying.driver_id))

    kill_while_copying(copying, numbers, own_brokers, lambda: own_brokers.partitions(copying.topic)[0].leader)
    kill_while_copying(copying, numbers, own_brokers, lambda: own_brokers.partitions(copying.out)[0].leader)
    kill_while_copying(copying, numbers, own_brokers, coordinator)
    kill_while_copying(copying, numbers, own_brokers, *[lambda one=one: one for one in own_brokers.node_ids])
    copying.assert_each_once(numbers.count)

    numbers.add(600)
    numbers.wait_for_a_batch_under_way(copying)
    own_brokers.kill(*own_brokers.node_ids)
    assert run.wait(ENDS_WITHIN_S) == 1, run.talk()
    last_word = last_error(run)
    assert "cannot connect to localhost:" in last_word
    run.wait_until_gone()
    start_again(own_brokers, copying, own_brokers.node_ids)
    copying.complete()
    copying.assert_each_once(numbers.count)


def last_error(run: ProcessSession) -> str:
    """What a run says why it ended; after that it only names what to try."""
    *_, error = [line for line in run.talk().splitlines() if not line.startswith("  try: ")]
    assert error.startswith("error: "), run.talk()
    return error


def kill_while_copying(
    copying: Copying, numbers: Numbers, brokers: ClusterProcesses, *victims: Callable[[], int]
) -> None:
    """Kills brokers in the middle of a batch, and starts them again: one when all is done without it, all at once."""
    numbers.add(600)
    numbers.wait_for_a_batch_under_way(copying)
    killed = [find() for find in victims]
    brokers.kill(*killed)
    if len(killed) == 1:
        copying.wait_for(numbers.count)
    start_again(brokers, copying, killed)
    copying.wait_for(numbers.count)


def start_again(brokers: ClusterProcesses, copying: Copying, node_ids: list[int]) -> None:
    for node_id in node_ids:
        brokers.start_broker(node_id, wait=False)
    brokers.wait_for_brokers(brokers.node_ids, BROKERS_BACK_WITHIN_S)
    for topic in (copying.topic, copying.out):
        brokers.wait_for_isr(topic, brokers.node_ids)


def test_brokers_that_are_down_at_the_start_are_named_at_once(tmp_path: Path) -> None:
    copying = Copying(tmp_path, NOBODY, "numbers")
    command = [SSKAFKA, "pipeline", "run", str(copying.file), "-b", NOBODY]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: cannot connect to 127.0.0.1:9: connection refused")
    assert "Spark" not in done.stderr
