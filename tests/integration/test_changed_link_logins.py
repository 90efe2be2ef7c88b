"""Users, passwords and mechanisms of the links between nodes, changed one broker after the other under load.

`connections.max.reauth.ms` is short, so that links log in again every few seconds while records are written.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Self

import pytest
from broker_process import BrokerProcess
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from free_ports import free_ports
from waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("_ours")]
NODES = (1, 2, 3)
SESSION_MS = 1_000
SECURITY = "org.apache.kafka.common.security"
BROKERS = "listener.name.brokers"
CONTROLLER_USERS = "listener.name.controller.plain.sasl.jaas.config"


def scram(user: str, password: str) -> str:
    return f'{SECURITY}.scram.ScramLoginModule required username="{user}" password="{password}";'


def plain(user: str, password: str, **users: str) -> str:
    listed = " ".join(f'user_{name}="{secret}"' for name, secret in users.items())
    return f'{SECURITY}.plain.PlainLoginModule required username="{user}" password="{password}" {listed};'


class SaslCluster:
    """Three nodes with an open listener for this test; brokers log in with SCRAM, to controllers with PLAIN."""

    def __init__(self, directory: Path) -> None:
        self._ports = free_ports(9)
        self._directory = directory
        self.nodes = [BrokerProcess(directory / f"node-{node}", self._settings(node)) for node in NODES]
        for node in self.nodes:
            node.format("--add-scram", "SCRAM-SHA-512=[name=broker,password=first]")
            node.launch()
        for node in self.nodes:
            node.wait_ready()
        self.bootstrap = ",".join(f"localhost:{port}" for port in self._ports[:3])
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def close(self) -> None:
        for node in self.nodes:
            node.close()

    def _settings(self, node: int) -> dict[str, object]:
        open_, brokers, controller = (self._ports[node - 1 + 3 * kind] for kind in range(3))
        return {
            "node.id": node,
            "listeners": f"OPEN://localhost:{open_},BROKERS://localhost:{brokers},CONTROLLER://localhost:{controller}",
            "listener.security.protocol.map": "OPEN:PLAINTEXT,BROKERS:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
            "inter.broker.listener.name": "BROKERS",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": ",".join(f"{other}@localhost:{self._ports[other + 5]}" for other in NODES),
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
            "sasl.mechanism.controller.protocol": "PLAIN",
            f"{BROKERS}.scram-sha-512.sasl.jaas.config": scram("broker", "first"),
            CONTROLLER_USERS: plain("broker", "first", broker="first"),
            "connections.max.reauth.ms": SESSION_MS,
            "connection.failed.authentication.delay.ms": 20,
            "replica.lag.time.max.ms": 3_000,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:broker;User:other",
            "audit.log": self._directory / f"audit-{node}.log",
        }

    def set_password(self, user: str, password: str) -> None:
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        upsertion = UserScramCredentialUpsertion(user, info, password.encode())
        self.admin.alter_user_scram_credentials([upsertion])[user].result(20)

    def delete_user(self, user: str) -> None:
        deletion = UserScramCredentialDeletion(user, ScramMechanism.SCRAM_SHA_512)
        self.admin.alter_user_scram_credentials([deletion])[user].result(20)

    def alter(self, node: int, **configs: str) -> None:
        """Change settings of one node."""
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in configs.items()
        ]
        resource = ConfigResource(ConfigResource.Type.BROKER, str(node), incremental_configs=entries)
        self.admin.incremental_alter_configs([resource])[resource].result(20)

    def in_sync(self) -> bool:
        topics = self.admin.list_topics(timeout=20).topics.values()
        partitions = [partition for topic in topics for partition in topic.partitions.values()]
        return all(len(partition.isrs) == len(NODES) and partition.leader >= 0 for partition in partitions)

    def failed_logins(self, node: int, listener: str) -> int:
        lines = (self._directory / f"audit-{node}.log").read_text().splitlines()
        found = [json.loads(line) for line in lines if line.endswith("}")]
        return sum(1 for line in found if line.get("listener") == listener and "failed_login" in line)

    def callers(self, node: int, listener: str) -> set[str]:
        lines = (self._directory / f"audit-{node}.log").read_text().splitlines()
        found = [json.loads(line) for line in lines if line.endswith("}")]
        return {line["principal"] for line in found if line.get("listener") == listener and "principal" in line}


class Load:
    """Writes to all replicas until it is left; every record must be acknowledged."""

    def __init__(self, cluster: SaslCluster) -> None:
        self._producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 5, "log_level": 0})
        self._stop = Event()
        self._thread = Thread(target=self._run)
        self.acknowledged, self.errors = 0, list[str]()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(30) == 0
        assert not self.errors
        assert self.acknowledged

    def _run(self) -> None:
        while not self._stop.wait(0.02):
            self._producer.produce("t", b"x", on_delivery=self._delivered)
            self._producer.poll(0)

    def _delivered(self, error: object, _: object) -> None:
        if error is None:
            self.acknowledged += 1
        else:
            self.errors.append(str(error))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslCluster]:
    started = SaslCluster(tmp_path_factory.mktemp("cluster"))
    try:
        started.admin.create_topics([NewTopic("t", 3, replication_factor=3)])["t"].result(20)
        yield started
    finally:
        started.close()


def stays_in_sync(cluster: SaslCluster) -> None:
    """Wait until every link has logged in again, and all replicas are in sync."""
    Event().wait(1.5 * SESSION_MS / 1000)
    wait_until(cluster.in_sync, "all replicas in sync", 30)


def test_a_login_that_other_nodes_would_refuse_is_refused(cluster: SaslCluster) -> None:
    cluster.set_password("intruder", "first")
    refused = {
        "does not parse": ({f"{BROKERS}.scram-sha-512.sasl.jaas.config": "ScramLoginModule"}, "semicolon"),
        "no credential": ({f"{BROKERS}.scram-sha-512.sasl.jaas.config": scram("nobody", "p")}, "user nobody; add"),
        "other password": ({f"{BROKERS}.scram-sha-512.sasl.jaas.config": scram("broker", "p")}, "another password"),
        "no rights": ({f"{BROKERS}.scram-sha-512.sasl.jaas.config": scram("intruder", "first")}, "super.users"),
        "not listed": ({CONTROLLER_USERS: plain("broker", "second", broker="first")}, "user_broker"),
        "no longer listed": ({CONTROLLER_USERS: plain("broker", "first", other="first")}, "user_broker"),
        "mechanism": ({"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256"}, "sasl.enabled.mechanisms"),
    }
    for what, (configs, reason) in refused.items():
        with pytest.raises(KafkaException) as caught:
            cluster.alter(1, **configs)
        assert reason in str(caught.value), what
        assert "password=" not in str(caught.value), what
    stays_in_sync(cluster)


def test_a_password_is_changed_and_links_recover(cluster: SaslCluster) -> None:
    with Load(cluster):
        before = cluster.failed_logins(1, "BROKERS")
        cluster.set_password("broker", "second")  # links still have the first one, and are refused when they log in
        wait_until(lambda: cluster.failed_logins(1, "BROKERS") > before, "refused links", 20)
        for node in NODES:
            cluster.alter(node, **{f"{BROKERS}.scram-sha-512.sasl.jaas.config": scram("broker", "second")})
        stays_in_sync(cluster)
    assert any("the login of this node was refused" in node.log for node in cluster.nodes)


def test_a_user_is_changed_without_a_refused_login(cluster: SaslCluster) -> None:
    jaas = f"{BROKERS}.scram-sha-512.sasl.jaas.config"
    with Load(cluster):
        cluster.set_password("other", "third")
        before = [cluster.failed_logins(node, "BROKERS") for node in NODES]
        for node in NODES:
            cluster.alter(node, **{jaas: scram("other", "third")})
            wait_until(cluster.in_sync, "all replicas in sync")
        stays_in_sync(cluster)
        cluster.delete_user("broker")
        stays_in_sync(cluster)
        assert [cluster.failed_logins(node, "BROKERS") for node in NODES] == before


def test_the_mechanism_is_changed(cluster: SaslCluster) -> None:
    users = {"other": "third"}
    enabled = f"{BROKERS}.sasl.enabled.mechanisms"
    with Load(cluster):
        for node in NODES:
            cluster.alter(
                node,
                **{
                    enabled: "SCRAM-SHA-512,PLAIN",
                    f"{BROKERS}.plain.sasl.jaas.config": plain("other", "third", **users),
                },
            )
        for node in NODES:
            cluster.alter(node, **{"sasl.mechanism.inter.broker.protocol": "PLAIN"})
        for node in NODES:
            cluster.alter(node, **{enabled: "PLAIN"})
        cluster.delete_user("other")
        stays_in_sync(cluster)


def test_the_user_at_controllers_is_changed(cluster: SaslCluster) -> None:
    both = {"broker": "first", "other": "second"}
    steps = [
        plain("broker", "first", **both),
        plain("other", "second", **both),
        plain("other", "second", other="second"),
    ]
    with Load(cluster):
        before = [cluster.failed_logins(node, "CONTROLLER") for node in NODES]
        for step in steps:
            for node in NODES:
                cluster.alter(node, **{CONTROLLER_USERS: step})
            stays_in_sync(cluster)
        assert [cluster.failed_logins(node, "CONTROLLER") for node in NODES] == before
        assert any("User:other" in cluster.callers(node, "CONTROLLER") for node in NODES)
    cluster.admin.create_topics([NewTopic("later", 3, replication_factor=3)])["later"].result(20)
    stays_in_sync(cluster)
