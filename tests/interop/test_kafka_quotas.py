"""Client quotas set with kafka-configs: both brokers throttle the same producer for about the same time."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from acl_lab import AddressedClient
from acl_requests import build
from benchmarks.brokers import Broker, BrokerKind
from programs import APACHE_KAFKA, SSKAFKA, JavaTools

from sskafka.records.builder import NewRecord, build_batch
from sskafka.wire.apis import API_BY_KEY, ApiKey

CONFIGS = "kafka.admin.ConfigCommand"
TOPIC = "quotas"
SETTINGS = {"quota.window.num": "2"}  # what a client uses at once counts as used in one second


@pytest.fixture(scope="module", params=[APACHE_KAFKA, SSKAFKA])
def limited(
    request: pytest.FixtureRequest,
    broker_kind: Callable[[str], BrokerKind],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Broker]:
    with broker_kind(request.param).running(tmp_path_factory.mktemp("quotas"), SETTINGS) as running:
        with AddressedClient(running.bootstrap, "127.0.0.1") as client:
            topics = [{"name": TOPIC, "num_partitions": 1, "replication_factor": 1}]
            ask(client, ApiKey.CREATE_TOPICS, 7, topics=topics, timeout_ms=10_000)
        yield running


def ask(client: AddressedClient, api: ApiKey, version: int, **values: Any) -> Any:
    return client.call(build(API_BY_KEY[api].request_class(), values), version)


def throttle_ms(broker: Broker, client_id: str, size: int) -> int:
    records = bytes(build_batch([NewRecord(value=b"v" * size, timestamp=1)]))
    topic = {"name": TOPIC, "partition_data": [{"index": 0, "records": records}]}
    with AddressedClient(broker.bootstrap, "127.0.0.1", client_id) as client:
        response = ask(client, ApiKey.PRODUCE, 9, acks=1, timeout_ms=5000, topic_data=[topic])
    assert response.responses[0].partition_responses[0].error_code == 0
    return int(response.throttle_time_ms)


@pytest.mark.parametrize(
    ("entity", "client_id"),
    [
        (("--entity-type", "clients", "--entity-name", "by-client"), "by-client"),
        (("--entity-type", "users", "--entity-name", "ANONYMOUS"), "by-user"),
        (
            ("--entity-type", "users", "--entity-default", "--entity-type", "clients", "--entity-name", "by-both"),
            "by-both",
        ),
    ],
)
def test_a_producer_above_its_quota_is_throttled(
    java: JavaTools, limited: Broker, entity: tuple[str, ...], client_id: str
) -> None:
    at = ("--bootstrap-server", limited.bootstrap)
    java.run(CONFIGS, *at, "--alter", *entity, "--add-config", "producer_byte_rate=20000")
    assert "producer_byte_rate=20000" in java.run(CONFIGS, *at, "--describe", *entity)
    assert 300 <= throttle_ms(limited, client_id, 30_000) <= 700, "30 kB in a second, where 20 kB are allowed"
    java.run(CONFIGS, *at, "--alter", *entity, "--delete-config", "producer_byte_rate")
    assert throttle_ms(limited, client_id, 30_000) == 0
