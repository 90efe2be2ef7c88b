"""schemathesis reads the broker's own OpenAPI document and sends what it allows, and what it does not: never a 5xx."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from broker_process import BrokerProcess
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode

pytestmark = pytest.mark.long

EXAMPLES = 10
PARTITIONS_MAX = 3
WAIT_MAX_MS = 20
SMALL = {"partition_count": PARTITIONS_MAX, "partitions": PARTITIONS_MAX, "max_wait_ms": WAIT_MAX_MS}
TOPIC = "fuzzed"
SERVER_ERROR = 500
ENDLESS = "/api/v1/events"
"""A stream of events, which test_http_inspection.py reads."""
EXPLANATIONS = {"detail", "error"}  # the ADR's routes have a name of their own for it


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    directory = tmp_path_factory.mktemp("schema-broker")
    broker = BrokerProcess(
        directory, {"http.listener": "127.0.0.1:0", "lab.api": "true", "metadata.log.dir": directory / "metadata"}
    )
    try:
        broker.start()
        yield schemathesis.openapi.from_url(f"http://{broker.http}/openapi.json")
    finally:
        broker.close()


def test_every_route_is_described(document: Any) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "http.md").read_text(encoding="utf-8")
    for operation in (found.ok() for found in document.get_all_operations()):
        route = f"{operation.method.upper()} {operation.path}"
        assert f"`{route}`" in page, f"{route} is not in docs/http.md"


@pytest.mark.parametrize("mode", list(GenerationMode))
def test_no_request_breaks_the_broker(document: Any, mode: GenerationMode) -> None:
    operations = [found.ok() for found in document.get_all_operations()]
    assert len(operations) >= 11
    for operation in operations:
        if operation.path == ENDLESS:
            continue
        if mode is GenerationMode.POSITIVE or operation.body:
            _send_examples(operation, mode)


def _send_examples(operation: Any, mode: GenerationMode) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def send(case: Any) -> None:
        _make_small(case.body)
        response = case.call()
        assert response.status_code < SERVER_ERROR, f"{case.as_curl_command()}\n{response.text}"
        if response.status_code >= 400:
            assert response.json().keys() & EXPLANATIONS

    send()


def _make_small(body: Any) -> None:
    """What is allowed and merely large or slow is made small; what is not allowed is left as it is."""
    if isinstance(body, dict):
        for name, most in SMALL.items():
            if isinstance(body.get(name), int | float):
                body[name] = min(body[name], most)
        if body.get("topic_partition"):
            body["topic_partition"] = f"{TOPIC}-1"
        if body.get("topic_name"):
            body["topic_name"] = TOPIC
