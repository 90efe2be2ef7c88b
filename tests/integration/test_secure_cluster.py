"""Three nodes whose links use TLS and SASL: quorum, replication, forwarding, and SSKafka's own clients."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from broker_process import BrokerProcess
from free_ports import free_ports
from tests.support.certificates import Certificates

from sskafka.client.admin import Admin, NewTopic
from sskafka.client.async_clients import AsyncProducer
from sskafka.client.cluster import Cluster
from sskafka.client.config import ConnectionConfig, configured
from sskafka.client.errors import AuthenticationFailedError

pytestmark = pytest.mark.usefixtures("_ours")
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
USERS = f'{PLAIN_MODULE} username="broker" password="broker-secret" user_broker="broker-secret" user_alice="a-secret";'


@contextmanager
def three_nodes(directory: Path, settings: Callable[[int, list[int]], dict[str, object]]) -> Iterator[str]:
    """Start three nodes; `settings` is given the id of a node and two ports for each node."""
    ports = free_ports(6)
    with ExitStack() as stack:
        nodes = [BrokerProcess(directory / f"node-{node}", settings(node, ports)) for node in (1, 2, 3)]
        for node in nodes:
            stack.callback(node.close)
            node.format("--add-scram", "SCRAM-SHA-512=[name=broker,password=b-secret]")
            node.launch()
        for node in nodes:
            node.wait_ready()
        yield ",".join(node.bootstrap for node in nodes)


def tls_settings(node: int, ports: list[int], certificates: Certificates) -> dict[str, object]:
    """Voters and brokers share a listener; each node shows its certificate."""
    key_store = certificates.issue(f"node-{node}.pem", "localhost", common_name=f"node-{node}")
    return {
        "node.id": node,
        "listeners": f"SSL://localhost:{ports[node]}",
        "security.inter.broker.protocol": "SSL",
        "controller.quorum.voters": ",".join(f"{other}@localhost:{ports[other]}" for other in (1, 2, 3)),
        "ssl.client.auth": "required",
        "default.replication.factor": 3,
        "min.insync.replicas": 3,
        **certificates.server_settings(key_store),
    }


def sasl_settings(node: int, ports: list[int], certificates: Certificates) -> dict[str, object]:
    """Controllers have a listener of their own, with PLAIN; brokers log in with SCRAM."""
    settings = tls_settings(node, ports, certificates)
    del settings["security.inter.broker.protocol"]
    scram = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="broker" password="b-secret";'
    return settings | {
        "listeners": f"CLIENT://localhost:{ports[node - 1]},CONTROLLER://localhost:{ports[node + 2]}",
        "listener.security.protocol.map": "CLIENT:SASL_SSL,CONTROLLER:SASL_SSL",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "CLIENT",
        "controller.quorum.voters": ",".join(f"{other}@localhost:{ports[other + 2]}" for other in (1, 2, 3)),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.client.plain.sasl.jaas.config": USERS,
        "listener.name.controller.plain.sasl.jaas.config": USERS,
        "listener.name.client.scram-sha-512.sasl.jaas.config": scram,
        "listener.name.controller.scram-sha-512.sasl.jaas.config": scram,
        "ssl.client.auth": "none",
    }


async def write_to_all_replicas(bootstrap: str, properties: dict[str, str]) -> int:
    """Create a topic on every broker and write a record that all replicas must have. Return the count of brokers."""
    async with Cluster(bootstrap, configured(ConnectionConfig, properties)) as cluster:
        await Admin(cluster).create_topics([NewTopic("t", 3, 3)])
        async with AsyncProducer(bootstrap, **properties) as producer:
            for number in range(9):
                await producer.send("t", None, str(number).encode() * 50_000, partition=number % 3)
        return len(await cluster.brokers())


def test_nodes_and_clients_with_certificates(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "certificates")
    client = certificates.issue("client.pem", "client@example.com", common_name="client")
    trusting = {"security.protocol": "SSL", "ssl.truststore.location": str(certificates.ca)}
    with three_nodes(tmp_path, lambda node, ports: tls_settings(node, ports, certificates)) as bootstrap:
        assert asyncio.run(write_to_all_replicas(bootstrap, {**trusting, "ssl.keystore.location": str(client)})) == 3
        with pytest.raises(AuthenticationFailedError, match="refused this client"):
            asyncio.run(write_to_all_replicas(bootstrap, trusting))
        with pytest.raises(AuthenticationFailedError, match="certificate"):
            asyncio.run(write_to_all_replicas(bootstrap, {"security.protocol": "SSL"}))


def test_nodes_with_scram_between_brokers_and_plain_to_controllers(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "certificates")
    with three_nodes(tmp_path, lambda node, ports: sasl_settings(node, ports, certificates)) as bootstrap:
        alice = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": "a-secret",
            "ssl.ca.location": str(certificates.ca),
        }
        assert asyncio.run(write_to_all_replicas(bootstrap, alice)) == 3
        with pytest.raises(AuthenticationFailedError, match="Invalid username or password"):
            asyncio.run(write_to_all_replicas(bootstrap, alice | {"sasl.password": "wrong"}))
