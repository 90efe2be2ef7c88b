"""A cluster of three nodes that moves from PLAINTEXT to SASL_SSL, one restart of each node for each stage.

    OPEN       PLAINTEXT alone
    LISTENERS  secured listeners are added beside it; nodes still connect to each other over PLAINTEXT
    LINKS      nodes connect to each other at the secured listeners; ACLs can be added, PLAINTEXT is still open
    CLOSED     PLAINTEXT is gone, also at the HTTP server of node 1, and ACLs alone decide

The settings are those of docs/security.md.
"""

from contextlib import ExitStack
from enum import IntEnum
from pathlib import Path

from broker_process import BrokerProcess
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from free_ports import free_ports
from tests.support.certificates import Certificates
from waiting import wait_until

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required"
BROKER_LOGIN = 'username="broker" password="broker-secret"'
BROKER_USERS = f'{PLAIN_MODULE} {BROKER_LOGIN} user_broker="broker-secret";'
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
NODES = (1, 2, 3)
HTTP_NODE = 1
HTTP_MECHANISMS = "listener.name.http.sasl.enabled.mechanisms"


class Stage(IntEnum):
    OPEN = 0
    LISTENERS = 1
    LINKS = 2
    CLOSED = 3


class MovingCluster:
    def __init__(self, directory: Path, *, controller_listeners: bool) -> None:
        """Without `controller_listeners`, voters are reached at the listener between brokers."""
        self._certificates = Certificates(directory / "certificates")
        self._has_controller_listeners = controller_listeners
        *kafka_ports, self.http_port = free_ports(4 * len(NODES) + 1)
        ports = iter(kafka_ports)
        self._ports = {
            node: dict(zip(("PLAINTEXT", "SASL_SSL", "CONTROLLER", "SECURE_CONTROLLER"), ports, strict=False))
            for node in NODES
        }
        self.nodes = {node: BrokerProcess(directory / f"node-{node}") for node in NODES}
        self.ca = self._certificates.ca
        self._stack = ExitStack()

    def start(self) -> "MovingCluster":
        for node, process in self.nodes.items():
            self._stack.callback(process.close)
            process.settings = self._settings(node, Stage.OPEN)
            process.launch()
        for process in self.nodes.values():
            process.wait_ready()
        return self

    def close(self) -> None:
        self._stack.close()

    def bootstrap(self, listener: str) -> str:
        return ",".join(f"localhost:{self._ports[node][listener]}" for node in NODES)

    def login(self, user: str, password: str) -> dict[str, object]:
        """Return the properties of a client of librdkafka at the secured listeners."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": password,
            "ssl.ca.location": str(self.ca),
        }

    def restart(self, node: int, stage: Stage, admin: AdminClient) -> None:
        """Restart a node with the settings of `stage`. Return when all replicas are in sync again."""
        process = self.nodes[node]
        process.settings = self._settings(node, stage)
        assert process.stop() == 0, process.log
        process.start()
        wait_until(lambda: has_whole_isr(admin), f"all replicas are in sync after the restart of node {node}", 60)

    def _settings(self, node: int, stage: Stage) -> dict[str, object]:
        names = ["SASL_SSL"] if stage == Stage.CLOSED else ["PLAINTEXT", "SASL_SSL"][: 1 + (stage > Stage.OPEN)]
        if self._has_controller_listeners:
            names += {
                Stage.OPEN: ["CONTROLLER"],
                Stage.LISTENERS: ["CONTROLLER", "SECURE_CONTROLLER"],
                Stage.LINKS: ["SECURE_CONTROLLER", "CONTROLLER"],
                Stage.CLOSED: ["SECURE_CONTROLLER"],
            }[stage]
        settings = self._common_settings(node, names, is_switched=stage >= Stage.LINKS)
        if node == HTTP_NODE:
            settings["http.listener"] = f"localhost:{self.http_port}"
        if node == HTTP_NODE and stage == Stage.CLOSED:
            settings |= {"http.security.protocol": "SASL_SSL", HTTP_MECHANISMS: "SCRAM-SHA-512"}
        if stage > Stage.OPEN:
            settings |= self._security_settings(node)
        if stage >= Stage.LINKS:
            settings |= {"authorizer.class.name": AUTHORIZER, "super.users": "User:broker;User:admin"}
        if stage == Stage.LINKS:
            settings["super.users"] = "User:ANONYMOUS;User:broker;User:admin"
            settings["allow.everyone.if.no.acl.found"] = "true"
        return settings

    def _common_settings(self, node: int, names: list[str], *, is_switched: bool) -> dict[str, object]:
        between = "SASL_SSL" if is_switched else "PLAINTEXT"
        settings: dict[str, object] = {
            "node.id": node,
            "listeners": ",".join(f"{name}://localhost:{self._ports[node][name]}" for name in names),
            "inter.broker.listener.name": between,
            "default.replication.factor": 3,
            "min.insync.replicas": 2,
            "offsets.topic.num.partitions": 3,
        }
        voters_at = between
        if self._has_controller_listeners:
            voters_at = "SECURE_CONTROLLER" if is_switched else "CONTROLLER"
            settings |= {
                "controller.listener.names": ",".join(name for name in names if name.endswith("CONTROLLER")),
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,"
                "CONTROLLER:PLAINTEXT,SECURE_CONTROLLER:SASL_SSL",
            }
        voters = ",".join(f"{voter}@localhost:{self._ports[voter][voters_at]}" for voter in NODES)
        return settings | {"controller.quorum.voters": voters}

    def _security_settings(self, node: int) -> dict[str, object]:
        key_store = self._certificates.issue(f"node-{node}.pem", "localhost")
        mechanism = "SCRAM-SHA-512" if self._has_controller_listeners else "PLAIN"
        settings = {
            "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
            "sasl.mechanism.inter.broker.protocol": mechanism,
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} {BROKER_LOGIN};",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": BROKER_USERS,
            **self._certificates.server_settings(key_store),
        }
        if self._has_controller_listeners:
            settings |= {
                "sasl.mechanism.controller.protocol": "PLAIN",
                "listener.name.secure_controller.sasl.enabled.mechanisms": "PLAIN",
                "listener.name.secure_controller.plain.sasl.jaas.config": BROKER_USERS,
            }
        return settings


def has_whole_isr(admin: AdminClient) -> bool:
    """Return whether all brokers are there and all replicas of all partitions are in sync."""
    try:
        metadata = admin.list_topics(timeout=2)
    except KafkaException:
        return False
    partitions = [partition for topic in metadata.topics.values() for partition in topic.partitions.values()]
    return len(metadata.brokers) == len(NODES) and all(len(item.isrs) == len(NODES) for item in partitions)
