"""Clients that write while their cluster moves from PLAINTEXT to SASL_SSL: no record is lost, none is stored twice."""

import socket
import ssl
from pathlib import Path

import httpx
from cluster_load import READER_GROUP, Load
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from moving_cluster import NODES, MovingCluster, Stage

PARTITIONS = 3
PASSWORDS = {"broker": "broker-secret", "admin": "admin-secret", "alice": "alice-secret"}
CALM = {"log_level": 0, "reconnect.backoff.max.ms": 200}
"""Brokers that restart are expected: the client need not report them."""


def create_topics(admin: AdminClient, *names: str) -> None:
    for future in admin.create_topics([NewTopic(name, PARTITIONS, len(NODES)) for name in names]).values():
        future.result(30)


def add_users(admin: AdminClient) -> None:
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    wanted = [UserScramCredentialUpsertion(user, credential, text.encode()) for user, text in PASSWORDS.items()]
    for future in admin.alter_user_scram_credentials(wanted).values():
        future.result(30)


def allow_alice(admin: AdminClient, topic: str) -> None:
    rules = [
        (ResourceType.TOPIC, topic, AclOperation.READ),
        (ResourceType.TOPIC, topic, AclOperation.WRITE),
        (ResourceType.GROUP, READER_GROUP, AclOperation.READ),
    ]
    wanted = [
        AclBinding(kind, name, ResourcePatternType.LITERAL, "User:alice", "*", operation, AclPermissionType.ALLOW)
        for kind, name, operation in rules
    ]
    for future in admin.create_acls(wanted).values():
        future.result(30)


def produced(bootstrap: str, topic: str, config: dict[str, object]) -> KafkaError | None:
    """Write a record. Return the error, or None."""
    outcomes: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": bootstrap, **config})
    producer.produce(topic, b"one more", on_delivery=lambda error, _: outcomes.append(error))
    assert producer.flush(30) == 0
    return outcomes[0]


def http_status(url: str, ca: Path | None = None, login: tuple[str, str] | None = None) -> int:
    return httpx.get(url, verify=ssl.create_default_context(cafile=str(ca)) if ca else False, auth=login).status_code


def is_closed(address: str) -> bool:
    host, port = address.rsplit(":", 1)
    with socket.socket() as tried:
        return tried.connect_ex((host, int(port))) != 0


def move_under_load(cluster: MovingCluster) -> None:
    """Restart each node three times, as docs/security.md says, and move the clients between the restarts."""
    open_bootstrap, closed_bootstrap = cluster.bootstrap("PLAINTEXT"), cluster.bootstrap("SASL_SSL")
    anonymous = AdminClient({"bootstrap.servers": open_bootstrap, **CALM})
    create_topics(anonymous, "old", "new")
    old_load = Load(open_bootstrap, "old", PARTITIONS, client_config=CALM)
    assert all(is_closed(address) for address in closed_bootstrap.split(","))
    assert http_status(f"http://localhost:{cluster.http_port}/metrics") == 200
    with old_load.running():
        for node in NODES:
            cluster.restart(node, Stage.LISTENERS, anonymous)
            old_load.wait_for_progress()
        add_users(anonymous)
        admin = AdminClient({"bootstrap.servers": closed_bootstrap, **cluster.login("admin", "admin-secret"), **CALM})
        alice = cluster.login("alice", "alice-secret") | CALM
        new_load = Load(closed_bootstrap, "new", PARTITIONS, client_config=alice)
        with new_load.running():
            for node in NODES:
                cluster.restart(node, Stage.LINKS, admin)
                old_load.wait_for_progress()
                new_load.wait_for_progress()
            allow_alice(admin, "new")
            new_load.wait_for_progress()
    old_load.verify()
    with new_load.running():
        for node in NODES:
            cluster.restart(node, Stage.CLOSED, admin)
            new_load.wait_for_progress()
    new_load.verify()
    assert all(is_closed(address) for address in open_bootstrap.split(","))
    url = f"https://localhost:{cluster.http_port}/metrics"
    assert http_status(url, cluster.ca) == 401
    assert http_status(url, cluster.ca, ("admin", "admin-secret")) == 200
    refused = produced(closed_bootstrap, "old", alice)
    assert refused is not None
    assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
