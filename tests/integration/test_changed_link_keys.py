"""A key store that is changed while a node runs: the node presents it to other nodes at its next connections."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from broker_process import BrokerProcess
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic
from free_ports import free_ports
from tests.support.certificates import Certificates
from waiting import wait_until

pytestmark = pytest.mark.usefixtures("_ours")
NAMES = ("node-1", "node-2", "renewed-2", "admin")


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path / "certificates")


@pytest.fixture
def nodes(tmp_path: Path, certificates: Certificates) -> Iterator[tuple[BrokerProcess, BrokerProcess]]:
    """A controller that is a broker, too, and a broker with an HTTP server. Both have an audit log."""
    ports = free_ports(4)
    common = {
        "inter.broker.listener.name": "BROKERS",
        "listener.security.protocol.map": "BROKERS:SSL,CONTROLLER:SSL",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@localhost:{ports[0]}",
        "ssl.client.auth": "required",
        "ssl.allow.dn.changes": True,
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": ";".join(f"User:{name}" for name in NAMES),
    }
    own: list[dict[str, object]] = [
        {
            "process.roles": "broker,controller",
            "listeners": f"BROKERS://localhost:{ports[1]},CONTROLLER://localhost:{ports[0]}",
        },
        {
            "process.roles": "broker",
            "listeners": f"BROKERS://localhost:{ports[2]}",
            "http.listener": f"localhost:{ports[3]}",
        },
    ]
    started = []
    try:
        for number, settings in enumerate(own, 1):
            keys = certificates.issue(f"node-{number}.pem", "localhost", common_name=f"node-{number}")
            settings |= {"node.id": number, **common, **certificates.server_settings(keys)}
            settings["audit.log"] = tmp_path / f"audit-{number}.log"
            started.append(BrokerProcess(tmp_path / f"node-{number}", settings))
            started[-1].start()
        yield started[0], started[1]
    finally:
        for node in started:
            node.close()


def callers(audit_log: Path, listener: str, api: str = "") -> set[str]:
    """Return the principals whose requests are in the audit log, or whose requests of this API."""
    lines = [json.loads(line) for line in audit_log.read_text().splitlines() if line.endswith("}")]
    return {line["principal"] for line in lines if line.get("listener") == listener and line["api"].startswith(api)}


def test_a_node_uses_it_for_its_next_connections(
    nodes: tuple[BrokerProcess, BrokerProcess], certificates: Certificates, tmp_path: Path
) -> None:
    first, second = nodes
    keys = certificates.issue("admin.pem", "admin@example.com", common_name="admin")
    login = {"ssl.ca.location": certificates.ca, "ssl.certificate.location": keys, "ssl.key.location": keys}
    login = {name: str(path) for name, path in login.items()}
    admin = AdminClient({"bootstrap.servers": first.bootstrap, "security.protocol": "SSL", "log_level": 0, **login})
    admin.create_topics([NewTopic("before", 1, replica_assignment=[[1, 2]])])["before"].result(20)
    audit_log, own_audit_log = tmp_path / "audit-1.log", tmp_path / "audit-2.log"
    for listener in ("BROKERS", "CONTROLLER"):
        wait_until(lambda name=listener: "User:node-2" in callers(audit_log, name), f"node 2 calls at {listener}")
    renewed = str(certificates.issue("renewed-2.pem", "localhost", common_name="renewed-2"))
    entries = [
        ConfigEntry(f"listener.name.{name}.ssl.keystore.location", renewed, incremental_operation=AlterConfigOpType.SET)
        for name in ("brokers", "controller")
    ]
    wanted = ConfigResource(ConfigResource.Type.BROKER, "2", incremental_configs=entries)
    for changed in admin.incremental_alter_configs([wanted]).values():
        changed.result(20)
    wait_until(lambda: "listener BROKERS uses other certificates" in second.log, "node 2 knows the change")
    urlopen(f"http://{second.settings['http.listener']}/groups/v1/groups", timeout=20).close()
    wait_until(lambda: callers(own_audit_log, "BROKERS", "ActForClient"), "a request of the HTTP process")
    assert callers(own_audit_log, "BROKERS", "ActForClient") == {"User:renewed-2"}
    first.stop()
    audit_log.unlink()
    first.start()
    admin.create_topics([NewTopic("after", 1, replica_assignment=[[1, 2]])])["after"].result(20)
    for listener in ("BROKERS", "CONTROLLER"):
        wait_until(lambda name=listener: "User:renewed-2" in callers(audit_log, name), f"the new key at {listener}")
        assert "User:node-2" not in callers(audit_log, listener)


def test_a_store_that_would_cut_the_node_off_is_refused_and_the_old_one_stays_in_use(
    nodes: tuple[BrokerProcess, BrokerProcess], certificates: Certificates, tmp_path: Path
) -> None:
    first, second = nodes
    keys = certificates.issue("admin.pem", "admin@example.com", common_name="admin")
    login = {"ssl.ca.location": certificates.ca, "ssl.certificate.location": keys, "ssl.key.location": keys}
    login = {name: str(path) for name, path in login.items()}
    admin = AdminClient({"bootstrap.servers": first.bootstrap, "security.protocol": "SSL", "log_level": 0, **login})
    strangers = Certificates(tmp_path / "strangers")
    strange = strangers.issue("node-2.pem", "localhost", common_name="node-2")
    fewer = certificates.issue("fewer.pem", "another.example", common_name="node-2")
    refused = {
        ("brokers", "keystore", strange): "do not trust each other",
        ("controller", "keystore", tmp_path / "missing.pem"): "cannot be read",
        ("brokers", "truststore", strangers.ca): "do not trust each other",
        ("brokers", "keystore", fewer): "has no DNS:localhost",
    }
    for (listener, store, path), reason in refused.items():
        name = f"listener.name.{listener}.ssl.{store}.location"
        entry = ConfigEntry(name, str(path), incremental_operation=AlterConfigOpType.SET)
        wanted = ConfigResource(ConfigResource.Type.BROKER, "2", incremental_configs=[entry])
        with pytest.raises(KafkaException, match=reason):
            admin.incremental_alter_configs([wanted])[wanted].result(20)
    Path(str(second.settings["ssl.keystore.location"])).write_bytes(strange.read_bytes())
    wait_until(lambda: "the old certificates stay in use" in second.log, "the file was read")
    first.stop()
    first.start()
    admin.create_topics([NewTopic("after", 1, replica_assignment=[[1, 2]])])["after"].result(20)
    wait_until(lambda: len(admin.list_topics("after").topics["after"].partitions[0].isrs) == 2, "node 2 replicates")
