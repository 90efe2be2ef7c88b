"""The HTTP server with TLS and logins: who may do what, by the same users, tokens and ACLs as at Kafka's listeners."""

import asyncio
import json
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
import requests
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.support.certificates import Certificates
from waiting import wait_until

import sskafka
from sskafka.client.adr import AdrClient, AdrError
from sskafka.client.cluster import Cluster
from sskafka.client.config import ConnectionConfig, configured
from sskafka.client.scram_users import remove_credentials, set_password
from sskafka.model.setting import SettingError

ISSUER, AUDIENCE = "https://issuer.example", "kafka"
USERS = {"alice": "alice-secret", "bob": "bob-secret", "admin": "admin-secret"}
RULES: list[dict[str, object]] = [
    {"allow_principal": "alice", "producer": True, "topic": "orders"},
    {"allow_principal": "alice", "consumer": True, "topic": "orders", "group": "billing"},
    {"allow_principal": "bob", "operation": "Describe", "topic": "orders"},
    {"allow_principal": "bob", "operation": "Describe", "cluster": True},
]
FAILED_DELAY_MS = 150


class Tokens:
    def __init__(self, directory: Path) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.file = directory / "keys.json"
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self._key.public_key()))
        self.file.write_text(json.dumps({"keys": [{**public, "kid": "k1", "use": "sig", "alg": "RS256"}]}))

    def token(self, **claims: Any) -> str:
        now = int(time.time())
        content = {"sub": "alice", "iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + 600, **claims}
        return jwt.encode(content, self._key, algorithm="RS256", headers={"kid": "k1"})

    def settings(self) -> dict[str, object]:
        return {
            "sasl.oauthbearer.jwks.endpoint.url": self.file.as_uri(),
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
        }


class SecureHttp:
    """A broker with TLS, users and ACLs, whose HTTP server accepts passwords and tokens."""

    def __init__(self, directory: Path, **more: object) -> None:
        self.certificates = Certificates(directory / "certificates")
        self.tokens = Tokens(directory)
        self.audit_log = directory / "audit.log"
        self.key_store = self.certificates.issue("server.pem", "localhost", "127.0.0.1")
        settings = {
            "http.listener": "127.0.0.1:0",
            "super.users": "User:sskafka-broker;User:admin",
            "audit.log": self.audit_log,
            "connection.failed.authentication.delay.ms": FAILED_DELAY_MS,
            "listener.name.http.sasl.enabled.mechanisms": "SCRAM-SHA-512,OAUTHBEARER,PLAIN",
            "listener.name.http.plain.sasl.jaas.config": (
                'org.apache.kafka.common.security.plain.PlainLoginModule required user_carol="carol-secret";'
            ),
            "listener.name.http.ssl.keystore.location": self.key_store,
            "listener.name.http.ssl.truststore.location": self.certificates.ca,
            **self.tokens.settings(),
            **more,
        }
        self.broker = sskafka.Broker(settings, tls=True, sasl=USERS, acls=RULES)

    def client(self, user: str = "", password: str = "", **options: Any) -> httpx.Client:
        options.setdefault("verify", ssl.create_default_context(cafile=str(self.certificates.ca)))
        auth = (user, password or USERS.get(user, "")) if user else None
        return httpx.Client(
            base_url=f"https://{self.broker.http_address}", auth=auth, timeout=30, trust_env=False, **options
        )


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureHttp]:
    started = SecureHttp(tmp_path_factory.mktemp("http"))
    with started.broker:
        with started.client("admin") as admin:
            assert (
                admin.post("/admin/v1/topics", json={"topic_name": "orders", "partition_count": 1}).status_code == 201
            )
            assert (
                admin.post("/admin/v1/topics", json={"topic_name": "hidden", "partition_count": 1}).status_code == 201
            )
        yield started


def produce(client: httpx.Client, payload: str = "x", acks: str = "1") -> httpx.Response:
    return client.post("/data/v1/produce", json={"topic_partition": "orders-1", "payload": payload, "acks": acks})


def consume(client: httpx.Client) -> httpx.Response:
    return client.post("/data/v1/consume", json={"topic_partition": "orders-1"})


@pytest.mark.parametrize("acks", ["0", "1", "isr", "all"])
def test_a_user_writes_and_reads_what_acls_allow(secure: SecureHttp, acks: str) -> None:
    with secure.client("alice") as alice:
        assert produce(alice, f"acks {acks}", acks).status_code == 204
        wait_until(
            lambda: f"acks {acks}" in [record["payload"] for record in consume(alice).json()["records"]], "the record"
        )
        topics = [topic["topic_name"] for topic in alice.get("/admin/v1/topics").json()["topics"]]
        assert topics == ["orders"]


def test_without_an_acl_a_sentence_says_so(secure: SecureHttp) -> None:
    with secure.client("bob") as bob:
        for answer in (produce(bob), consume(bob), bob.delete("/admin/v1/topics/orders")):
            assert answer.status_code == 403
            assert answer.json()["detail"].startswith("User:bob is not authorized: "), answer.text
        created = bob.post("/admin/v1/topics", json={"topic_name": "new", "partition_count": 1})
        assert created.status_code == 403
        assert bob.post("/data/v1/consume", json={"topic_partition": "hidden-1"}).status_code == 403


def test_the_rest_of_adr_0011_has_the_same_acls(secure: SecureHttp) -> None:
    with secure.client("alice") as alice, secure.client("bob") as bob:
        assert alice.post("/topics/orders/produce", json={"data": "aGk="}).status_code == 200
        assert alice.get("/topics/orders/consume").status_code == 200
        for refused in (
            bob.post("/topics/orders/produce", json={"data": "aGk="}),
            bob.get("/topics/orders/consume"),
            bob.post("/admin/flush"),
        ):
            assert refused.status_code == 403
            assert "User:bob may not" in refused.text


def test_the_console_is_behind_the_login_and_obeys_acls(secure: SecureHttp) -> None:
    with secure.client() as nobody:
        for path in ("/", "/console/app.js", "/api/v1/console"):
            refused = nobody.get(path)
            assert refused.status_code == 401
            assert "Basic " in refused.headers["WWW-Authenticate"], "the browser asks for user and password"
    with secure.client("alice") as alice, secure.client("bob") as bob:
        assert alice.get("/").status_code == 200
        assert alice.get("/api/v1/console").json()["principal"] == "User:alice"
        assert [topic["name"] for topic in alice.get("/api/v1/topics").json()["topics"]] == ["orders"]
        for path in ("/api/v1/load", "/api/v1/quorum/elections"):
            assert (alice.get(path).status_code, bob.get(path).status_code) == (403, 200), path
        for refused in (
            alice.post("/api/v1/topics", json={"name": "new"}),
            bob.delete("/api/v1/topics/orders"),
            bob.post("/api/v1/topics/orders/partitions", json={"count": 2}),
            bob.patch("/api/v1/topics/orders/configs", json={"configs": {"retention.ms": "1000"}}),
        ):
            assert refused.status_code == 403
            assert "is not authorized: " in refused.json()["detail"], refused.text


def test_records_of_the_console_have_the_same_acls(secure: SecureHttp) -> None:
    path = "/api/v1/topics/orders/records"
    with secure.client("alice") as alice, secure.client("bob") as bob:
        stored = alice.post(path, json={"value": {"text": "shown to alice"}})
        assert stored.status_code == 201, stored.text
        assert "shown to alice" in alice.get(path).text
        assert "shown to alice" in alice.get(f"{path}/search").text
        one = f"/api/v1/topics/orders/partitions/0/records/{stored.json()['offset']}"
        for refused in (
            bob.get(path),
            bob.get(one),
            bob.get(f"{one}/value"),
            bob.post(path, json={"value": {"text": "x"}}),
            alice.post(f"{one}/copies", json={"topic": "hidden"}),
            alice.get("/api/v1/topics/hidden/records"),
            alice.post("/api/v1/groups/other/offsets", json={"to": "start", "topics": ["orders"]}),
            bob.delete("/api/v1/groups/billing"),
        ):
            assert refused.status_code == 403, refused.text
            assert "is not authorized" in refused.json()["detail"]
        for stream in (bob.get(f"{path}/search"), bob.get(f"{path}/download")):
            assert "shown to alice" not in stream.text
            assert "TOPIC_AUTHORIZATION_FAILED" in stream.text or "problem" in stream.text


def test_without_a_login_only_health_is_served(secure: SecureHttp) -> None:
    with secure.client() as nobody:
        for path in ("/livez", "/readyz", "/healthcheck"):
            assert nobody.get(path).status_code == 200
        for path in ("/metrics", "/docs", "/openapi.json", "/admin/v1/topics", "/groups/v1/groups", "/nothing"):
            answer = nobody.get(path)
            assert answer.status_code == 401
            offered = answer.headers.get_list("www-authenticate")
            assert offered == ['Basic realm="sskafka", charset="UTF-8"', 'Bearer realm="sskafka"']
            assert answer.json() == {"detail": "this server needs a login"}
        assert produce(nobody).status_code == 401


@pytest.mark.parametrize(
    "header",
    [
        "Basic !!!",
        "Basic YWxpY2U=",
        "Basic OnBhc3N3b3Jk",
        "Basic AGFsaWNlAGFsaWNlLXNlY3JldDph",
        "Bearer not.a.token",
        "Digest username=alice",
        "Basic",
        "",
    ],
)
def test_malformed_logins_are_refused(secure: SecureHttp, header: str) -> None:
    with secure.client() as client:
        assert client.get("/admin/v1/topics", headers={"Authorization": header.encode()}).status_code in {400, 401}


def test_a_wrong_password_is_refused_after_the_delay(secure: SecureHttp) -> None:
    with secure.client("admin") as admin:
        before = _failed(admin)
        for user in ("alice", "nobody"):
            with secure.client(user, "wrong") as client:
                client.get("/livez")
                began = time.monotonic()
                answer = client.get("/admin/v1/topics")
                assert answer.status_code == 401
                assert time.monotonic() - began >= FAILED_DELAY_MS / 1000
                assert answer.json() == {"detail": "the login is not valid"}
        assert _failed(admin) == before + 2


def _failed(client: httpx.Client) -> int:
    lines = client.get("/metrics").text.splitlines()
    return int(
        float(next(line.split()[-1] for line in lines if 'failed_authentication_total{listener="HTTP"}' in line))
    )


def test_plain_users_of_the_http_listener(secure: SecureHttp) -> None:
    with secure.client("carol", "carol-secret") as carol:
        assert carol.get("/admin/v1/topics").json() == {"topics": []}
    with secure.client("sskafka-broker", "carol-secret") as other:
        assert other.get("/admin/v1/topics").status_code == 401


def test_requests_with_a_token(secure: SecureHttp) -> None:
    """By another client library."""
    url = f"https://{secure.broker.http_address}/data/v1/produce"
    body = {"topic_partition": "orders-1", "payload": "by token", "acks": "1"}

    def send(token: str) -> int:
        headers = {"Authorization": f"Bearer {token}"}
        return requests.post(
            url, json=body, headers=headers, verify=str(secure.certificates.ca), timeout=30
        ).status_code

    assert send(secure.tokens.token()) == 204
    assert send(secure.tokens.token(sub="bob")) == 403
    assert send(secure.tokens.token(exp=int(time.time()) - 600)) == 401
    assert send(secure.tokens.token(aud="another")) == 401
    assert send(secure.tokens.token()[:-4] + "AAAA") == 401


def test_metrics_need_describe_on_the_cluster(secure: SecureHttp) -> None:
    with secure.client("bob") as bob, secure.client("alice") as alice:
        assert "kafka_server" in bob.get("/metrics").text
        answer = alice.get("/metrics")
        assert (answer.status_code, answer.json()["detail"].split()[0]) == (403, "User:alice")


def test_log_files_need_describe_on_the_cluster(secure: SecureHttp) -> None:
    segments = "/api/v1/topics/orders/partitions/0/segments"
    with secure.client("bob") as bob, secure.client("alice") as alice:
        for path in (segments, f"{segments}/0/batches", f"{segments}/0/index", "/api/v1/metadata/records"):
            assert bob.get(path).status_code == 200
            refused = alice.get(path)
            assert (refused.status_code, refused.json()["detail"].split()[0]) == (403, "User:alice")
        shown = bob.get("/api/v1/metadata/records?limit=500").json()["records"]
        (credential, *_) = [one for one in shown if one["type"] == "USER_SCRAM_CREDENTIAL_RECORD"]
        assert credential["data"]["storedKey"] == credential["data"]["salt"] == "(hidden)"
        below = bob.get("/api/v1/metadata?path=/brokers/topics").json()["children"]
        assert "hidden" not in [child["name"] for child in below]


def test_pipelines_and_dead_letters_have_the_acls_of_their_topics(secure: SecureHttp) -> None:
    letters = "/api/v1/topics/hidden/dead-letters"
    with secure.client("admin") as admin, secure.client("alice") as alice:
        assert admin.get("/api/v1/pipelines").json() == {"pipelines": []}
        assert admin.get(letters).json()["waiting"] == 0
        for refused in (
            alice.get("/api/v1/pipelines"),
            alice.get(letters),
            alice.post(f"{letters}/redrive", json={"execute": True}),
            alice.get("/api/v1/topics/orders/dead-letters"),  # she may read the topic, but not the group
        ):
            assert refused.status_code == 403, refused.text
            assert "is not authorized" in refused.json()["detail"]


def test_decisions_are_in_the_audit_log(secure: SecureHttp) -> None:
    with secure.client("bob") as bob:
        assert produce(bob).status_code == 403

    def denied() -> list[dict[str, Any]]:
        entries = [json.loads(line) for line in secure.audit_log.read_text().splitlines()]
        return [entry for entry in entries if entry.get("principal") == "User:bob" and not entry["allowed"]]

    wait_until(lambda: any(entry["api"] == "Produce" for entry in denied()), "the line of the audit log")
    entry = next(entry for entry in denied() if entry["api"] == "Produce")
    assert (entry["listener"], entry["host"], entry["resource"]) == ("HTTP", "127.0.0.1", "orders")


def test_a_deleted_user_counts_at_once(secure: SecureHttp) -> None:
    def status(password: str) -> int:
        with secure.client("dave", password) as dave:
            return dave.get("/admin/v1/topics").status_code

    async def run() -> None:
        properties = secure.broker.login("admin").kafka()
        async with Cluster(properties["bootstrap.servers"], configured(ConnectionConfig, properties)) as cluster:
            assert await asyncio.to_thread(status, "first") == 401
            await set_password(cluster, "dave", "first", ["SCRAM-SHA-512"])
            assert await asyncio.to_thread(status, "first") == 200
            await set_password(cluster, "dave", "second", ["SCRAM-SHA-512"])
            assert await asyncio.to_thread(status, "first") == 401
            assert await asyncio.to_thread(status, "second") == 200
            await remove_credentials(cluster, "dave", ["SCRAM-SHA-512"])
            assert await asyncio.to_thread(status, "second") == 401

    asyncio.run(run())


def test_plain_http_and_other_authorities_get_no_answer(secure: SecureHttp, tmp_path: Path) -> None:
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"http://{secure.broker.http_address}/livez", trust_env=False)
    other = ssl.create_default_context(cafile=str(Certificates(tmp_path).ca))
    with secure.client(verify=other) as client, pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        client.get("/livez")
    with secure.client() as client:
        assert client.get("/livez").status_code == 200


def test_certificates_are_replaced_while_the_server_runs(secure: SecureHttp) -> None:
    def names() -> str:
        context = ssl.create_default_context(cafile=str(secure.certificates.ca))
        host, port = str(secure.broker.http_address).rsplit(":", 1)
        with (
            socket.create_connection((host, int(port))) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as tls,
        ):
            return str(tls.getpeercert())

    secure.certificates.issue("server.pem", "localhost", "127.0.0.1", "by-file.example")
    wait_until(lambda: "by-file.example" in names(), "the certificate of the other file")
    changed = secure.certificates.issue("changed.pem", "localhost", "127.0.0.1", "by-config.example")
    admin = AdminClient({**secure.broker.login("admin").librdkafka(), "log_level": 0})

    def alter(path: Path) -> None:
        entry = ConfigEntry(
            "listener.name.http.ssl.keystore.location", str(path), incremental_operation=AlterConfigOpType.SET
        )
        resource = ConfigResource("BROKER", "1", incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(20)

    alter(changed)
    wait_until(lambda: "by-config.example" in names(), "the certificate of the other setting")
    with pytest.raises(KafkaException):
        alter(changed.with_name("missing.pem"))


# -- other protocols


@pytest.mark.parametrize("client_auth", ["requested", "required"])
def test_certificates_of_clients_are_their_names(tmp_path: Path, client_auth: str) -> None:
    certificates = Certificates(tmp_path)
    settings = {
        **certificates.server_settings(certificates.issue("server.pem", "localhost", "127.0.0.1")),
        "http.listener": "127.0.0.1:0",
        "listener.name.http.ssl.client.auth": client_auth,
        "ssl.principal.mapping.rules": "RULE:^CN=user-([^,]+).*$/$1/",
    }
    rules = [{"allow_principal": "alice", "operation": "Describe", "cluster": True}]
    with sskafka.Broker({**settings, "super.users": "User:ANONYMOUS"}, tls=True, acls=rules) as broker:

        def status(path: str, *names: str) -> int:
            context = ssl.create_default_context(cafile=str(certificates.ca))
            if names:
                key_store = certificates.issue("client.pem", "x", common_name=names[0])
                context.load_cert_chain(str(key_store))
            with httpx.Client(base_url=f"https://{broker.http_address}", verify=context, trust_env=False) as client:
                return client.get(path).status_code

        assert status("/metrics", "user-alice") == 200
        assert status("/metrics", "user-bob") == 403
        assert status("/metrics", "no-rule") == 403
        assert status("/livez", "no-rule") == 200
        if client_auth == "required":
            with pytest.raises(httpx.HTTPError):
                status("/livez")
        else:
            assert status("/metrics") == 200  # ANONYMOUS is a super user here


def plain_client(broker: sskafka.Broker) -> httpx.Client:
    return httpx.Client(base_url=f"http://{broker.http_address}", timeout=30, trust_env=False)


def test_anonymous_clients_may_do_what_acls_allow_them() -> None:
    """The HTTP server is PLAINTEXT, the Kafka listener needs a login."""
    rules: list[dict[str, object]] = [
        {"allow_principal": "ANONYMOUS", "consumer": True, "topic": "orders", "group": "g"},
        {"allow_principal": "ANONYMOUS", "producer": True, "topic": "elsewhere", "allow_host": "10.0.0.1"},
    ]
    settings = {"http.listener": "127.0.0.1:0", "http.security.protocol": "PLAINTEXT"}
    with sskafka.Broker(settings, sasl=USERS, acls=rules) as broker, plain_client(broker) as client:
        assert client.get("/topics/orders/consume").status_code == 404
        assert client.post("/topics/orders/produce", json={"data": "aGk="}).status_code == 403
        assert client.post("/topics/elsewhere/produce", json={"data": "aGk="}).status_code == 403
        assert consume(client).status_code == 404
        created = client.post("/admin/v1/topics", json={"topic_name": "orders", "partition_count": 1})
        assert created.status_code == 403


def test_without_an_authorizer_anonymous_clients_see_health_alone() -> None:
    settings = {"http.listener": "127.0.0.1:0", "http.security.protocol": "PLAINTEXT"}
    with sskafka.Broker(settings, sasl=USERS) as broker, plain_client(broker) as client:
        assert client.get("/readyz").status_code == 200
        assert "kafka_server" in client.get("/metrics").text
        assert client.get("/admin/v1/topics").status_code == 404
        assert client.get("/topics/orders/consume").status_code == 404


def test_a_login_is_needed_also_without_an_authorizer() -> None:
    with sskafka.Broker({"http.listener": "127.0.0.1:0"}, sasl=USERS) as broker:
        url = f"http://{broker.http_address}/admin/v1/topics"
        assert httpx.get(url, trust_env=False).status_code == 401
        assert httpx.get(url, auth=("alice", "alice-secret"), trust_env=False).json() == {"topics": []}


def test_the_adr_server_needs_a_listener_with_anonymous_clients() -> None:
    with pytest.raises(SettingError, match="its clients are anonymous, and every Kafka listener"):
        sskafka.Broker({"adr.listener": "127.0.0.1:0"}, sasl=USERS).start()
    listeners = "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0"
    settings = {"adr.listener": "127.0.0.1:0", "listeners": listeners, "inter.broker.listener.name": "SASL_PLAINTEXT"}
    with sskafka.Broker(settings, sasl=USERS, acls=[]) as broker:
        address = str(broker.adr_address)
        with AdrClient(address) as adr, pytest.raises(AdrError, match="User:ANONYMOUS may not"):
            adr.produce("orders", b"hi")


def test_the_history_has_the_acls_of_what_it_shows(secure: SecureHttp) -> None:
    """Alice may not describe the cluster. Bob may, and the topic orders; he may see no group."""
    with secure.client("alice") as alice, secure.client("bob") as bob:
        own = alice.get("/api/v1/history/load").json()
        assert (own["points"], own["newest"]["brokers"]) == ([], [])
        wait_until(lambda: bob.get("/api/v1/history/load").json()["points"], "the history of the cluster")
        assert alice.get("/api/v1/history/topics/orders").json()["points"] == []
        assert bob.get("/api/v1/history/topics/orders").status_code == 200
        for path in ("history/topics/hidden", "topics/hidden/schemas", "history/groups/billing"):
            assert bob.get(f"/api/v1/{path}").status_code in {403, 404}, path
        segments = "/api/v1/topics/orders/partitions/0/segments"
        assert (alice.get(segments).status_code, bob.get(segments).status_code) == (403, 200)
