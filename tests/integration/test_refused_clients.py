"""Wrong passwords, certificates and tokens, and an ACL that is removed: the error that each Python client expects.

Java, kcat and Spark are in tests/interop."""

import gc
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
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
from refused_clients import AioKafka, ConfluentKafka, KafkaPython, Login, OurClient, RefusedClient
from secure_broker import PASSWORD, SecureBroker
from tests.support.certificates import Certificates
from waiting import wait_until

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

CLIENTS: dict[str, RefusedClient] = {
    "confluent-kafka": ConfluentKafka(),
    "aiokafka": AioKafka(),
    "kafka-python": KafkaPython(),
    "sskafka": OurClient(),
}
REFUSED = "Invalid username or password"
EXPIRED_TOKEN = "Signature has expired"
VERIFY_FAILED = "certificate verify failed"
NO_BROKER = "Unable to bootstrap from"
"""What aiokafka and kafka-python report, whatever the reason is. They log the reason."""
EXPECTED = {
    "wrong password": {
        "confluent-kafka": ("_AUTHENTICATION", REFUSED),
        "aiokafka": ("KafkaConnectionError", NO_BROKER),
        "kafka-python": ("KafkaTimeoutError", NO_BROKER),
        "sskafka": ("AuthenticationFailedError", REFUSED),
    },
    "expired certificate": {
        "confluent-kafka": ("_", VERIFY_FAILED),
        "aiokafka": ("KafkaConnectionError", NO_BROKER),
        "kafka-python": ("KafkaTimeoutError", NO_BROKER),
        "sskafka": ("AuthenticationFailedError", "certificate has expired"),
    },
    "wrong authority": {
        "confluent-kafka": ("_", VERIFY_FAILED),
        "aiokafka": ("KafkaConnectionError", NO_BROKER),
        "kafka-python": ("KafkaTimeoutError", NO_BROKER),
        "sskafka": ("AuthenticationFailedError", "self-signed certificate in certificate chain"),
    },
    "expired token": {
        "confluent-kafka": ("_AUTHENTICATION", EXPIRED_TOKEN),
        "aiokafka": ("KafkaConnectionError", NO_BROKER),
        "kafka-python": ("KafkaTimeoutError", NO_BROKER),
        "sskafka": ("AuthenticationFailedError", EXPIRED_TOKEN),
    },
}
LOGGED = {
    "wrong password": REFUSED,
    "expired certificate": "certificate has expired",
    "wrong authority": VERIFY_FAILED,
    "expired token": EXPIRED_TOKEN,
}
HALF_READ = "socket disconnected"
"""What kafka-python logs if the end of the connection arrives together with the reason."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    """Its SSL listener has an expired certificate. Clients at the PLAINTEXT listener may do everything."""
    directory = tmp_path_factory.mktemp("refusing")
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "audit.log": directory / "audit.log",
    }
    started = SecureBroker(directory, settings)
    started.present_expired_certificate()
    try:
        started.start()
        yield started
    finally:
        started.close()


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """aiokafka and kafka-python forget sockets without closing them: the warning must not hit the next test."""
    yield
    gc.collect()


@pytest.fixture(params=CLIENTS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def login_of(broker: SecureBroker, case: str, directory: Path) -> Login:
    ca = broker.certificates.ca
    match case:
        case "wrong password":
            return Login(broker.at("SASL_SSL"), "SASL_SSL", ca, "PLAIN", "wrong")
        case "expired certificate":
            return Login(broker.at("SSL"), "SSL", ca)
        case "wrong authority":
            return Login(broker.at("SASL_SSL"), "SASL_SSL", Certificates(directory).ca, "PLAIN", PASSWORD)
        case _:
            file = directory / "token"
            file.write_text(broker.token(exp=1_000_000))
            return Login(broker.at("SASL_SSL"), "SASL_SSL", ca, "OAUTHBEARER", token_file=file)


@pytest.mark.parametrize("case", EXPECTED)
def test_a_client_that_cannot_log_in(
    broker: SecureBroker, name: str, case: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    said = CLIENTS[name].connect(login_of(broker, case, tmp_path))
    error, text = EXPECTED[case][name]
    assert said.startswith(error)
    assert text in said
    if text == NO_BROKER and (case, name) != ("expired token", "aiokafka"):  # aiokafka takes the error for a success
        assert LOGGED[case] in caplog.text or HALF_READ in caplog.text


def test_an_acl_that_is_removed_while_a_client_reads(broker: SecureBroker, name: str) -> None:
    topic = f"read-by-{name}"
    plain = {"bootstrap.servers": broker.at("PLAINTEXT")}
    producer, admin = Producer(plain), AdminClient(plain)
    producer.produce(topic, b"first")
    assert producer.flush(30) == 0
    allowed = (ResourceType.TOPIC, topic, Pattern.LITERAL, "User:alice", "*", AclOperation.READ)
    of_group = (ResourceType.GROUP, *allowed[1:])
    wanted = [AclBinding(*each, AclPermissionType.ALLOW) for each in (allowed, of_group)]
    for added in admin.create_acls(wanted).values():
        added.result(30)

    def revoke() -> None:
        (removed,) = admin.delete_acls([AclBindingFilter(*allowed, AclPermissionType.ALLOW)]).values()
        assert len(removed.result(30)) == 1

    login = Login(broker.at("SASL_SSL"), "SASL_SSL", broker.certificates.ca, "PLAIN", PASSWORD)
    said = CLIENTS[name].read(login, topic, revoke)
    assert "TOPIC_AUTHORIZATION_FAILED" in said or "TopicAuthorizationFailedError" in said, said


def test_failed_logins_are_in_the_audit_log(broker: SecureBroker, tmp_path: Path) -> None:
    CLIENTS["sskafka"].connect(login_of(broker, "wrong password", tmp_path))
    path = Path(str(broker.settings["audit.log"]))

    def failed() -> list[dict[str, str]]:
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        return [line for line in lines if line.get("user") == "alice"]

    wait_until(lambda: bool(failed()), "the line of the audit log")
    line = failed()[-1]
    assert line["listener"] == "SASL_SSL"
    assert line["host"] == "127.0.0.1"
    assert line["failed_login"] == "PLAIN: Authentication failed: Invalid username or password"
