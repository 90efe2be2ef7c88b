"""Spark's queries and pipelines under every kind of death: in the end each record is there once.

The harness is that of the tests with Spark; these are the combinations that take too long for them.
"""

import random
import signal
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster_processes import ClusterProcesses

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "spark"))

from pipeline_process import Copying
from process_session import ProcessSession
from sink_process import RECORDS, SinkProgram, assert_each_once_whoever_dies
from spark_fixtures import append, make_topic
from standalone_cluster import standalone_cluster
from waiting import wait_until

from sskafka.client.config import ConnectionConfig
from sskafka.client.coordinators import CoordinatorType, coordinator_of
from sskafka.pipelines.connector.committing import prefix_of
from sskafka.pipelines.connector.planning import ClusterSession

SETTINGS = {
    "min.insync.replicas": 2,
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
    "broker.heartbeat.interval.ms": 500,
    "broker.session.timeout.ms": 3_000,
}
PARTITIONS = 2
SEED = 1
COPIED = 6_000


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcesses]:
    cluster = ClusterProcesses(tmp_path_factory.mktemp("brokers"), 3, SETTINGS)
    try:
        yield cluster.start()
    finally:
        cluster.close()


@pytest.fixture
def filled_topic(brokers: ClusterProcesses) -> Callable[[int], str]:
    """A topic with so many numbers."""

    def make(count: int) -> str:
        with ClusterSession(brokers.bootstrap, ConnectionConfig()) as session:
            topic = make_topic(session, PARTITIONS, "numbers")
            for partition in range(PARTITIONS):
                values = [b"%d" % number for number in range(partition, count, PARTITIONS)]
                append(session, topic, values, partition)
        return topic

    return make


@pytest.mark.parametrize(
    ("step", "who"),
    [
        ("task", "java"),
        ("before the intent", "java"),
        ("between commits", "java"),
        ("done", "java"),
        ("task", "driver"),
        ("before the intent", "driver"),
        ("after the intent", "driver"),
    ],
)
def test_each_record_is_in_the_topic_once_whoever_dies(
    step: str, who: str, brokers: ClusterProcesses, filled_topic: Callable[[int], str], tmp_path: Path
) -> None:
    source, sink = filled_topic(RECORDS), filled_topic(0)
    assert_each_once_whoever_dies(SinkProgram(brokers.bootstrap, source, sink, tmp_path), step, who)


@pytest.mark.parametrize("batch", ["0", "1"])
@pytest.mark.parametrize("step", ["after the intent", "between commits", "before the end", "done"])
def test_a_driver_that_sleeps_wakes_up_beside_a_newer_run(
    step: str, batch: str, brokers: ClusterProcesses, filled_topic: Callable[[int], str], tmp_path: Path
) -> None:
    program = SinkProgram(brokers.bootstrap, filled_topic(RECORDS), filled_topic(0), tmp_path)
    older = program.start_until(step, dieBatch=batch)
    try:
        assert program.run() == 0, program.talk()
        program.resume()
        assert older.wait(240) != 0, "it has gone on, though a newer run had taken over"
    finally:
        older.close()
    assert program.committed() == list(range(RECORDS))
    assert program.run() == 0, program.talk()


@pytest.mark.parametrize("step", ["task", "before the intent", "after the intent", "between commits", "done"])
def test_the_coordinator_of_the_driver_dies_and_the_query_goes_on(
    step: str, brokers: ClusterProcesses, filled_topic: Callable[[int], str], tmp_path: Path
) -> None:
    source, sink = filled_topic(RECORDS), filled_topic(0)
    program = SinkProgram(brokers.bootstrap, source, sink, tmp_path)
    query_id = str(uuid.uuid4())
    program.choose_query_id(query_id)
    driver = f"{prefix_of(sink, query_id)}-driver"
    with ClusterSession(brokers.bootstrap, ConnectionConfig()) as session:
        victim = session.run(coordinator_of(session.cluster, CoordinatorType.TRANSACTION, driver))
    options = {"broker": str(brokers.pid(victim)), "transactionalIdPrefix": sink}
    try:
        assert program.run_until_death(step, "broker", **options) == 0, program.talk()
        assert program.committed() == list(range(RECORDS))
    finally:
        if brokers.is_running(victim):
            brokers.kill(victim)
        brokers.start_broker(victim)


def test_an_attempt_that_begins_after_its_replacement_has_ended_harms_nobody(
    brokers: ClusterProcesses, filled_topic: Callable[[int], str], tmp_path: Path
) -> None:
    """Spark's speculation, which pipelines refuse, starts the replacement while the first attempt sleeps."""
    source, sink = filled_topic(RECORDS), filled_topic(0)
    with standalone_cluster(tmp_path) as cluster:
        program = SinkProgram(brokers.bootstrap, source, sink, tmp_path, speculating_cluster=cluster.master)
        run = program.start_until("task begins")
        try:
            program.wait_for_replacement()
            program.resume()
            assert run.wait(240) == 0, program.talk()
            run.wait_until_gone()
        finally:
            run.close()
        assert program.committed() == list(range(RECORDS))
        with ClusterSession(brokers.bootstrap, ConnectionConfig()) as session:
            append(session, source, [b"%d" % RECORDS])
            assert program.run() == 0, program.talk()
            assert program.open_transactions(session) == []
    wait_until(lambda: program.committed() == list(range(RECORDS + 1)), "each record is committed once")


def test_a_pipeline_that_is_killed_again_and_again(
    brokers: ClusterProcesses, filled_topic: Callable[[int], str], tmp_path: Path
) -> None:
    chance = random.Random(SEED)
    topic, copied = filled_topic(COPIED), [COPIED]
    copying = Copying(tmp_path, brokers.bootstrap, topic)

    def add(count: int) -> None:
        numbers = [b"%d" % number for number in range(copied[0], copied[0] + count)]
        with ClusterSession(brokers.bootstrap, ConnectionConfig()) as session:
            append(session, topic, numbers)
        copied[0] += count

    try:
        for death in chance.sample(list(DEATHS), k=len(DEATHS)):
            sys.stderr.write(f"seed {SEED}: {death}\n")
            run = copying.start()
            copying.wait_for_a_batch_under_way(lambda: copied[0], add)
            DEATHS[death](run, brokers, chance)
        copying.complete()
        copying.assert_each_once(copied[0])
    finally:
        copying.close()


def driver_dies(run: ProcessSession, brokers: ClusterProcesses, chance: random.Random) -> None:
    run.kill_driver()
    if chance.random() < 0.5:  # else the next run starts beside what is left of this one
        run.wait_until_gone()


def java_dies(run: ProcessSession, brokers: ClusterProcesses, chance: random.Random) -> None:
    run.kill_java()
    assert run.wait() == 1, run.talk()


def everything_dies(run: ProcessSession, brokers: ClusterProcesses, chance: random.Random) -> None:
    """As when the power goes: Spark and all brokers at once."""
    run.send(signal.SIGKILL)
    brokers.kill(*brokers.node_ids)
    run.close()
    for node_id in brokers.node_ids:
        brokers.start_broker(node_id, wait=False)
    brokers.wait_for_brokers(brokers.node_ids)


def broker_and_driver_die(run: ProcessSession, brokers: ClusterProcesses, chance: random.Random) -> None:
    """The next run recovers while the cluster does."""
    victim = chance.choice(brokers.node_ids)
    brokers.kill(victim)
    run.kill_driver()
    brokers.start_broker(victim, wait=False)


DEATHS: dict[str, Callable[[ProcessSession, ClusterProcesses, random.Random], None]] = {
    "the driver": driver_dies,
    "java": java_dies,
    "everything": everything_dies,
    "a broker and the driver": broker_and_driver_die,
}
