"""Spark's own Kafka connector at a broker with TLS, SASL and ACLs, beside SSKafka's with the same options."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AclBindingFilter, AclOperation, AclPermissionType, AdminClient, NewTopic, ResourceType
from confluent_kafka.admin import ResourcePatternType as Pattern
from secure_broker import SecureBroker
from tests.support.certificates import Certificates

import sskafka
import sskafka.coordination.transaction_coordinator  # on the broker's loop, pytest would take long to rewrite it
from sskafka.pipelines.connector.errors import OptionError
from sskafka.pipelines.files.pipeline import Pipeline, load_pipeline
from sskafka.pipelines.runner.run import RunSettings, run_pipeline
from sskafka.pipelines.shipped.reading import committed_records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = """\
name: official
connector: kafka
kafka: {kafka}
sources:
  words: {{topic: words, format: text}}
sinks:
  - topic: {{topic: copies, value: value}}
trigger: available-now
"""
EVERY_ACL_OF_ORDERS = AclBindingFilter(
    ResourceType.TOPIC, "orders", Pattern.LITERAL, None, None, AclOperation.ANY, AclPermissionType.ANY
)
OAUTH = "org.apache.kafka.common.security.oauthbearer"
ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
"""System property with the files from which Java's client reads tokens."""
ROWS = [(str(number), f"value {number}") for number in range(20)]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_both_connectors_take_the_same_options(spark: "SparkSession", mechanism: str) -> None:
    settings = {"super.users": "User:admin", "transaction.state.log.num.partitions": 1}
    users = {"admin": "admin-secret", "alice": "alice-secret"}
    rules = [
        {"allow_principal": "alice", "operation": ["Read", "Write", "Create"], "topic": "*"},
        {"allow_principal": "alice", "operation": ["Read", "Describe"], "group": "*"},
        {"allow_principal": "alice", "operation": ["Write", "Describe"], "transactional_id": "*"},
    ]
    with sskafka.Broker(settings, tls=True, sasl=users, acls=rules) as broker:
        admin = AdminClient({**broker.login("admin").librdkafka(), "log_level": 0})
        admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result(20)
        options = {f"kafka.{name}": text for name, text in broker.login("alice", mechanism).kafka().items()}
        rows = spark.createDataFrame(ROWS, "key string, value string")
        for connector in ("kafka", "sskafka"):
            rows.write.format(connector).options(**options, topic="orders").mode("append").save()
        for connector in ("kafka", "sskafka"):
            found = spark.read.format(connector).options(**options, subscribe="orders").load()
            values = [bytes(row.value).decode() for row in found.select("value").collect()]
            assert sorted(values) == sorted([value for _, value in ROWS] * 2)


@pytest.mark.parametrize("connector", ["kafka", "sskafka"])
def test_refusals_have_the_reason_that_kafkas_client_gives(
    spark: "SparkSession", tmp_path: Path, connector: str
) -> None:
    users = {"admin": "admin-secret", "alice": "alice-secret"}
    rules = [{"allow_principal": "alice", "operation": ["Read"], "topic": "orders"}]
    with sskafka.Broker({"super.users": "User:admin"}, tls=True, sasl=users, acls=rules) as broker:
        as_admin = {**broker.login("admin").librdkafka(), "log_level": 0}
        admin, producer = AdminClient(as_admin), Producer(as_admin)
        producer.produce("orders", b"first")
        assert producer.flush(30) == 0
        alice = {f"kafka.{name}": text for name, text in broker.login("alice", "PLAIN").kafka().items()}
        short = {"kafka.default.api.timeout.ms": "8000", "kafka.request.timeout.ms": "5000"}
        jaas = alice["kafka.sasl.jaas.config"].replace("alice-secret", "wrong")
        for options, said in (
            ({"kafka.sasl.jaas.config": jaas}, "Invalid username or password"),
            ({"kafka.ssl.truststore.location": str(Certificates(tmp_path).ca)}, "(?i)ssl handshake.*failed"),
        ):
            read = spark.read.format(connector).options(**alice | short | options, subscribe="orders")
            with pytest.raises(Exception, match=said):
                read.load().count()
        stream = spark.readStream.format(connector).options(**alice, subscribe="orders", startingOffsets="earliest")
        query = stream.load().writeStream.format("memory").queryName(f"of_{connector}").start()
        query.processAllAvailable()
        assert spark.table(f"of_{connector}").count() == 1
        (removed,) = admin.delete_acls([EVERY_ACL_OF_ORDERS]).values()
        assert len(removed.result(30)) == 1
        producer.produce("orders", b"second")
        assert producer.flush(30) == 0
        with pytest.raises(Exception, match=r"(?i)not authorized|authorization|may not"):
            query.awaitTermination(120)
        assert spark.table(f"of_{connector}").count() == 1


@pytest.fixture(scope="module")
def with_expired_certificate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    broker = SecureBroker(tmp_path_factory.mktemp("expired"))
    broker.present_expired_certificate()
    try:
        yield broker.start()  # type: ignore[misc]
    finally:
        broker.close()


@pytest.mark.parametrize("connector", ["kafka", "sskafka"])
@pytest.mark.parametrize(
    ("case", "said"),
    [("expired token", "Signature has expired"), ("expired certificate", "(?i)ssl handshake.*failed")],
)
def test_expired_tokens_and_certificates(
    spark: "SparkSession", with_expired_certificate: SecureBroker, tmp_path: Path, connector: str, case: str, said: str
) -> None:
    broker, protocol = with_expired_certificate, "SSL" if case == "expired certificate" else "SASL_SSL"
    options = {
        "kafka.bootstrap.servers": broker.at(protocol),
        "kafka.security.protocol": protocol,
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": str(broker.certificates.ca),
        "kafka.default.api.timeout.ms": "8000",
        "kafka.request.timeout.ms": "5000",
    }
    if case == "expired token":
        token = tmp_path / "token.jwt"
        token.write_text(broker.token(exp=1_000_000))
        options |= {
            "kafka.sasl.mechanism": "OAUTHBEARER",
            "kafka.sasl.jaas.config": f"{OAUTH}.OAuthBearerLoginModule required;",
            "kafka.sasl.login.callback.handler.class": f"{OAUTH}.OAuthBearerLoginCallbackHandler",
            "kafka.sasl.oauthbearer.token.endpoint.url": token.as_uri(),
        }
        assert spark._jvm is not None
        spark._jvm.java.lang.System.setProperty(ALLOWED_URLS, token.as_uri())
    with pytest.raises(Exception, match=said):
        spark.read.format(connector).options(**options, subscribe="orders").load().count()


def pipeline_of(directory: Path, properties: dict[str, str]) -> Pipeline:
    file = directory / "official.yaml"
    without = {name: text for name, text in properties.items() if name != "bootstrap.servers"}
    file.write_text(FILE.format(kafka=json.dumps(without)))
    return load_pipeline(file)


@pytest.mark.usefixtures("spark")
def test_a_secured_pipeline_runs_on_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Java's client needs Java's names; the names of librdkafka are refused."""
    password = "geheim-4711-nirgends"
    with sskafka.Broker({"transaction.state.log.num.partitions": 1}, tls=True, sasl={"alice": password}) as broker:
        login = broker.login("alice")
        admin = AdminClient({**login.librdkafka(), "log_level": 0})
        admin.create_topics([NewTopic("words", 1, 1)])["words"].result(20)
        producer = Producer({**login.librdkafka(), "log_level": 0})
        for number in range(10):
            producer.produce("words", b"%d" % number)
        assert producer.flush(20) == 0
        settings = RunSettings(broker.bootstrap_servers, "local[2]")
        told: list[str] = []
        run_pipeline(pipeline_of(tmp_path, login.kafka()), settings, tell=told.append)
        assert any("Spark's own connector" in text for text in told)
        found = committed_records(broker.bootstrap_servers, "copies", login.librdkafka())
        assert sorted(value or b"" for _, value in found) == [b"%d" % number for number in range(10)]
        with pytest.raises(
            OptionError, match=r"kafka\.ssl\.ca\.location: .* needs ssl\.truststore\.location"
        ) as refused:
            run_pipeline(pipeline_of(tmp_path, login.librdkafka()), settings, tell=told.append)
        said = capfd.readouterr()
        assert password not in f"{told} {refused.value} {said.out} {said.err}"
