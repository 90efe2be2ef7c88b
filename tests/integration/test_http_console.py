"""The console's files, the routes that change topics, and read-only mode."""

from collections.abc import Iterator

import pytest
from broker_process import BrokerProcess, StartBroker
from http_client import HttpClient

from sskafka.servers.http.routes.console import HEADERS


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path_factory.mktemp("console-broker"), {"http.listener": "127.0.0.1:0"})
    try:
        yield process.start()
    finally:
        process.close()


@pytest.fixture
def http(broker: BrokerProcess) -> Iterator[HttpClient]:
    client = HttpClient(broker.http)
    yield client
    client.close()


def test_the_page_and_its_files(http: HttpClient) -> None:
    page = http.http.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert {name: page.headers[name] for name in HEADERS} == HEADERS
    script = http.http.get("/console/app.js")
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    again = http.http.get("/console/app.js", headers={"If-None-Match": script.headers["etag"]})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", script.headers["etag"])
    assert http.http.get("/console/app.js", headers={"If-None-Match": page.headers["etag"]}).status_code == 200
    for other in ("/console/nothing.js", "/console/README.md", "/console/..%2Fapp.py", "/console/%2Fetc%2Fhostname"):
        assert http.http.get(other).status_code == 404, other


def test_the_page_is_for_the_names_of_the_broker_alone(http: HttpClient) -> None:
    assert http.http.get("/", headers={"Host": "elsewhere.example"}).status_code == 403


def test_a_topic_is_created_changed_and_deleted(http: HttpClient) -> None:
    body = {"name": "changed", "partitions": 2, "configs": {"retention.ms": "60000"}}
    status, checked = http.post("/api/v1/topics", {**body, "validate_only": True})
    assert (status, checked["topic_id"]) == (201, None)
    assert http.get("/api/v1/topics/changed")[0] == 404
    status, created = http.post("/api/v1/topics", body)
    assert (status, created["partitions"], created["replication_factor"]) == (201, 2, 1)
    assert http.post("/api/v1/topics", body)[0] == 409
    assert http.post("/api/v1/topics/changed/partitions", {"count": 3}) == (204, None)
    changes = {"retention.ms": None, "cleanup.policy": "compact"}
    assert http.patch("/api/v1/topics/changed/configs", {"configs": changes}) == (204, None)
    topic = http.get("/api/v1/topics/changed")[1]
    assert len(topic["partitions"]) == 3
    assert [(one["name"], one["value"]) for one in topic["configs"]] == [("cleanup.policy", "compact")]
    assert http.delete("/api/v1/topics/changed") == (204, None)
    assert http.get("/api/v1/topics/changed")[0] == 404


def test_refused_changes_say_why(http: HttpClient) -> None:
    http.post("/api/v1/topics", {"name": "refused", "partitions": 2})
    for refused in (
        http.post("/api/v1/topics", {"name": "no/name"}),
        http.post("/api/v1/topics", {"name": "too-many-replicas", "replication_factor": 3}),
        http.post("/api/v1/topics", {"name": "unknown-setting", "configs": {"no.such.setting": "1"}}),
        http.post("/api/v1/topics/refused/partitions", {"count": 1}),
        http.patch("/api/v1/topics/refused/configs", {"configs": {"retention.ms": "soon"}}),
    ):
        assert refused[0] == 400, refused
        assert refused[1]["detail"]
    for missing in (
        http.delete("/api/v1/topics/missing"),
        http.post("/api/v1/topics/missing/partitions", {"count": 4}),
        http.patch("/api/v1/topics/missing/configs", {"configs": {"retention.ms": "1000"}}),
    ):
        assert missing == (404, {"detail": "there is no topic 'missing'"})
    half_a_pair = http.post("/api/v1/topics", {"name": "half", "configs": {"retention.ms": "\ud800"}})
    assert half_a_pair[0] == 422


def test_read_only_brokers_refuse_every_change(start_broker: StartBroker) -> None:
    broker = start_broker({"http.listener": "127.0.0.1:0", "console.read.only": "true"})
    http = HttpClient(broker.http)
    try:
        assert http.get("/api/v1/console")[1]["is_read_only"]
        paths = http.get("/openapi.json")[1]["paths"]
        changes = [
            (method, path)
            for path, operations in paths.items()
            for method in operations
            if path.startswith("/api/v1/") and method != "get"
        ]
        assert changes
        for method, path in changes:
            answer = http.http.request(method, path, content="{}")
            assert answer.status_code == 403, f"{method} {path}"
            assert "console.read.only" in answer.json()["detail"]
        assert http.get("/api/v1/topics")[0] == 200
        http.create("lab")  # the lab's routes are not the console's
    finally:
        http.close()


def test_the_console_can_be_turned_off(start_broker: StartBroker) -> None:
    broker = start_broker({"http.listener": "127.0.0.1:0", "console.enable": "false"})
    http = HttpClient(broker.http)
    try:
        assert (http.get("/")[0], http.get("/console/app.js")[0], http.get("/api/v1/console")[0]) == (404, 404, 200)
    finally:
        http.close()
