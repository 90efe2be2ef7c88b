"""Replicas of the topics that pipelines create, on clusters whose brokers are down, drained, or were fewer before."""

import re
import shlex
from collections.abc import Iterator

import pytest
from cluster_processes import ClusterProcesses
from typer.testing import CliRunner

from sskafka.cli.commands import app
from sskafka.client.admin import Admin, NewTopic
from sskafka.client.config import ConnectionConfig
from sskafka.client.configs import describe_topic_setting
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.connector.topics import create_topics, replica_notice

SETTINGS = {
    "default.replication.factor": 1,
    "broker.heartbeat.interval.ms": 500,
    "broker.session.timeout.ms": 3_000,
}
FENCED_WITHIN_S = 30


@pytest.fixture(scope="module")
def own_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcesses]:
    cluster = ClusterProcesses(tmp_path_factory.mktemp("replicas"), 3, SETTINGS)
    try:
        yield cluster.start()
    finally:
        cluster.close()


@pytest.fixture
def session(own_brokers: ClusterProcesses) -> Iterator[ClusterSession]:
    """A session whose topics are deleted after the test: a broker that alone has a replica cannot be drained."""
    with ClusterSession(own_brokers.bootstrap, ConnectionConfig()) as connected:
        yield connected
        admin = Admin(connected.cluster)
        connected.run(admin.delete_topics([topic.name for topic in connected.run(admin.list_topics())]))


def sskafka(*arguments: str) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output


def replicas_of(brokers: ClusterProcesses, topic: str) -> list[list[int]]:
    return [sorted(partition.replicas) for partition in brokers.partitions(topic).values()]


def min_in_sync(session: ClusterSession, topic: str) -> str:
    return session.run(describe_topic_setting(session.cluster, [topic], "min.insync.replicas"))[topic]


def test_a_broker_that_is_down_gets_its_replicas_when_it_returns(
    own_brokers: ClusterProcesses, session: ClusterSession
) -> None:
    """A topic that is created with the replicas of the live brokers would keep that number for ever."""
    own_brokers.kill(3)
    try:
        own_brokers.wait_for_brokers([1, 2], FENCED_WITHIN_S)
        assert create_topics(session, [NewTopic("control", 1)]) == ["control"]
        assert replicas_of(own_brokers, "control") == [[1, 2, 3]]
        assert min_in_sync(session, "control") == "2"
    finally:
        own_brokers.start_broker(3)
    own_brokers.wait_for_isr("control", [1, 2, 3])
    assert create_topics(session, [NewTopic("control", 1)]) == []


def test_a_drained_broker_does_not_keep_topics_from_being_created(
    own_brokers: ClusterProcesses, session: ClusterSession
) -> None:
    sskafka("broker", "drain", "3", "-b", own_brokers.bootstrap)
    try:
        assert create_topics(session, [NewTopic("events", 1), NewTopic("dead", 2)]) == ["events", "dead"]
        assert replicas_of(own_brokers, "events") == [[1, 2]]
        assert replicas_of(own_brokers, "dead") == [[1, 2], [1, 2]]
        assert min_in_sync(session, "events") == "1"
    finally:
        sskafka("broker", "undrain", "3", "-b", own_brokers.bootstrap)


def test_commands_that_add_replicas_are_named_and_work(own_brokers: ClusterProcesses, session: ClusterSession) -> None:
    small = [NewTopic("old-out", 3, 1), NewTopic("old-control", 1, 1, configs={"min.insync.replicas": "1"})]
    session.run(Admin(session.cluster).create_topics(small))
    create_topics(session, [NewTopic("whole", 1)])
    names = ["old-out", "whole", "old-control", "missing"]
    notice = replica_notice(session, names, own_brokers.bootstrap)
    assert "the cluster allows 3 replicas of each partition, and old-out has 1, old-control has 1:" in notice
    commands = re.findall(r"`sskafka (.*?)`", notice)
    assert len(commands) == 2
    for command in commands:
        sskafka(*shlex.split(command))
    for topic in ("old-out", "old-control"):
        own_brokers.wait_for_isr(topic, [1, 2, 3])
        assert min_in_sync(session, topic) == "2"
    assert replica_notice(session, names, own_brokers.bootstrap) == ""


def test_a_topic_with_many_partitions_has_a_plan_in_a_file(
    own_brokers: ClusterProcesses, session: ClusterSession
) -> None:
    session.run(Admin(session.cluster).create_topics([NewTopic("wide", 20, 1)]))
    notice = replica_notice(session, ["wide"], own_brokers.bootstrap)
    assert "wide has 1" in notice
    assert "`sskafka cluster reassign --file PLAN" in notice
