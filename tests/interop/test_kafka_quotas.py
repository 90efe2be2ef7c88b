"""Client quotas set with kafka-configs: both brokers throttle the same clients, in the same way.

A Fetch above its quota gets a response without partitions, and the client fetches again."""

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


# -- fetches above the quota

SIPPED = "sipped"
BATCH_BYTES, BATCHES, QUOTA = 10_000, 4, 25_000


@pytest.fixture
def sipping(java: JavaTools, limited: Broker) -> Iterator[AddressedClient]:
    """A client that may fetch two batches in a second, of a topic that has four."""
    entity = ("--entity-type", "clients", "--entity-name", SIPPED)
    at = ("--bootstrap-server", limited.bootstrap)
    with AddressedClient(limited.bootstrap, "127.0.0.1", "filler") as filler:
        ask(filler, ApiKey.DELETE_TOPICS, 5, topic_names=[SIPPED], timeout_ms=10_000)
        topics = [{"name": SIPPED, "num_partitions": 1, "replication_factor": 1}]
        while ask(filler, ApiKey.CREATE_TOPICS, 7, topics=topics, timeout_ms=10_000).topics[0].error_code:
            pass  # the topic is still being deleted
        for _ in range(BATCHES):
            records = bytes(build_batch([NewRecord(value=b"v" * BATCH_BYTES, timestamp=1)]))
            data = {"name": SIPPED, "partition_data": [{"index": 0, "records": records}]}
            response = ask(filler, ApiKey.PRODUCE, 9, acks=1, timeout_ms=5000, topic_data=[data])
            while response.responses[0].partition_responses[0].error_code:  # the leader is not known yet
                response = ask(filler, ApiKey.PRODUCE, 9, acks=1, timeout_ms=5000, topic_data=[data])
    java.run(CONFIGS, *at, "--alter", *entity, "--add-config", f"consumer_byte_rate={QUOTA}")
    with AddressedClient(limited.bootstrap, "127.0.0.1", SIPPED) as client:
        yield client
    java.run(CONFIGS, *at, "--alter", *entity, "--delete-config", "consumer_byte_rate")


def fetched(client: AddressedClient, session: tuple[int, int], offset: int | None = 0) -> Any:
    """Fetch from an offset. None: the session knows the partition and its offset."""
    partition = {"partition": 0, "partition_max_bytes": 1_000_000, "fetch_offset": offset}
    topics = [] if offset is None else [{"topic": SIPPED, "partitions": [partition]}]
    session_id, epoch = session
    return ask(client, ApiKey.FETCH, 12, topics=topics, max_bytes=1_000_000, session_id=session_id, session_epoch=epoch)


def size_of(response: Any) -> int:
    return sum(len(data.records or b"") for topic in response.responses for data in topic.partitions)


def first_response(client: AddressedClient, session: tuple[int, int]) -> Any:
    response = fetched(client, session)
    while not response.responses:  # earlier fetches count, too
        assert response.throttle_time_ms > 0
        response = fetched(client, session)
    return response


def test_a_fetch_gets_no_more_than_the_quota_of_its_window(sipping: AddressedClient) -> None:
    assert 2 * BATCH_BYTES <= size_of(first_response(sipping, (0, -1))) <= QUOTA


def test_a_fetch_above_the_quota_has_no_partitions_and_no_session(sipping: AddressedClient) -> None:
    first_response(sipping, (0, -1))
    response = fetched(sipping, (0, 0))
    assert (response.error_code, response.session_id, response.responses) == (0, 0, [])
    assert 0 < response.throttle_time_ms <= 1500


def test_an_incremental_fetch_above_the_quota_keeps_its_session(sipping: AddressedClient) -> None:
    first = first_response(sipping, (0, 0))
    assert first.session_id > 0
    empty = fetched(sipping, (first.session_id, 1))
    assert (empty.error_code, empty.session_id, empty.responses) == (0, first.session_id, [])
    assert 0 < empty.throttle_time_ms <= 1500
    epoch, again = 2, fetched(sipping, (first.session_id, 2), None)
    while not again.responses:
        assert (again.error_code, again.session_id) == (0, first.session_id)
        epoch += 1
        again = fetched(sipping, (first.session_id, epoch), None)
    assert 2 * BATCH_BYTES <= size_of(again) <= QUOTA


def test_a_fetch_within_the_quota_is_not_throttled(sipping: AddressedClient) -> None:
    first_response(sipping, (0, -1))
    response = fetched(sipping, (0, -1), BATCHES)
    assert (response.error_code, size_of(response)) == (0, 0)
    assert [data.high_watermark for topic in response.responses for data in topic.partitions] in ([], [BATCHES])
