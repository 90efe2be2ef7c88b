"""What kcat says when its password, its authority, the certificate of the broker or an ACL is not good (any more).

kcat can send one kind of token alone, which nobody has signed; it has no delegation tokens."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourceType,
)
from confluent_kafka.admin import ResourcePatternType as Pattern
from programs import KCAT_SECONDS_MAX
from secure_broker import PASSWORD, SecureBroker
from tests.support.certificates import Certificates

TOPIC = "read-by-kcat"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    """Its SSL listener has an expired certificate. Clients at the PLAINTEXT listener may do everything."""
    settings: dict[str, object] = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    started = SecureBroker(tmp_path_factory.mktemp("kcat"), settings)
    started.present_expired_certificate()
    try:
        started.start()
        yield started
    finally:
        started.close()


UNSIGNED_TOKEN = {
    "sasl.mechanism": "OAUTHBEARER",
    "enable.sasl.oauthbearer.unsecure.jwt": "true",
    "sasl.oauthbearer.config": "principal=alice lifeSeconds=3600",
}


def command(program: str, broker: SecureBroker, protocol: str, ca: Path, password: str | None = PASSWORD) -> list[str]:
    """Return how to call kcat; without a password, it logs in with a token."""
    properties = {"security.protocol": protocol, "ssl.ca.location": ca}
    if protocol == "SASL_SSL" and password is None:
        properties |= UNSIGNED_TOKEN
    elif protocol == "SASL_SSL":
        properties |= {"sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": password}
    options = [word for name, value in properties.items() for word in ("-X", f"{name}={value}")]
    return [program, "-b", broker.at(protocol), *options]


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("wrong password", "Authentication failed: Invalid username or password"),
        ("wrong authority", "certificate verify failed"),
        ("expired certificate", "certificate verify failed"),
        ("unsigned token", "Authentication failed: The specified alg value is not allowed"),
    ],
)
def test_kcat_cannot_log_in(kcat_program: str, broker: SecureBroker, tmp_path: Path, case: str, said: str) -> None:
    ca = Certificates(tmp_path).ca if case == "wrong authority" else broker.certificates.ca
    protocol = "SSL" if case == "expired certificate" else "SASL_SSL"
    password = {"wrong password": "wrong", "unsigned token": None}.get(case, PASSWORD)
    done = subprocess.run(
        [*command(kcat_program, broker, protocol, ca, password), "-L", "-m", "5"],
        capture_output=True,
        text=True,
        timeout=KCAT_SECONDS_MAX,
        check=False,
    )
    assert done.returncode != 0
    assert said in done.stderr


def test_an_acl_that_is_removed_while_kcat_reads(kcat_program: str, broker: SecureBroker) -> None:
    plain = {"bootstrap.servers": broker.at("PLAINTEXT")}
    producer, admin = Producer(plain), AdminClient(plain)
    producer.produce(TOPIC, b"first")
    assert producer.flush(30) == 0
    topic = (ResourceType.TOPIC, TOPIC, Pattern.LITERAL)
    allowed = (*topic, "User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW)
    (added,) = admin.create_acls([AclBinding(*allowed)]).values()
    added.result(30)
    words = [*command(kcat_program, broker, "SASL_SSL", broker.certificates.ca), "-C", "-u", "-t", TOPIC]
    reader = subprocess.Popen(
        [*words, "-o", "beginning"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
    )
    try:
        assert reader.stdout is not None
        assert "first\n" in iter(reader.stdout.readline, "")
        (removed,) = admin.delete_acls([AclBindingFilter(*allowed)]).values()
        assert len(removed.result(30)) == 1
        producer.produce(TOPIC, b"second")
        assert producer.flush(30) == 0
        said = next(line for line in iter(reader.stdout.readline, "") if "authorization failed" in line.lower())
        assert "second" not in said
    finally:
        reader.kill()
        reader.communicate()
