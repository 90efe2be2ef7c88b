"""Client quotas on a running broker: throttle times, muted connections, no cost without quotas."""

import time
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest
from acl_lab import AddressedClient
from acl_requests import build
from broker_process import BrokerProcess
from cluster_processes import StartCluster

from sskafka.model.errors import ErrorCode
from sskafka.records.builder import NewRecord, build_batch
from sskafka.wire.apis import API_BY_KEY, ApiKey
from sskafka.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, OpData, RequestEntryData
from sskafka.wire.messages.api_versions import ApiVersionsRequest
from sskafka.wire.messages.list_groups import ListGroupsRequest

# Two windows of a second: what a client uses at once counts as used in one second.
SETTINGS = {
    "quota.window.num": 2,
    "controller.quota.window.num": 2,
    "num.partitions": 1,
}
TOPIC = "quotas"
LATE_S = 5.0  # machines that test are busy


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(tmp_path_factory.mktemp("quotas"), SETTINGS)
    try:
        with client_of(broker.start(), "admin") as admin:
            topics = [{"name": TOPIC, "num_partitions": 1, "replication_factor": 1}]
            ask(admin, ApiKey.CREATE_TOPICS, 7, topics=topics, timeout_ms=10_000)
        yield broker
    finally:
        broker.close()


def client_of(broker: BrokerProcess, client_id: str, source: str = "127.0.0.1") -> AddressedClient:
    return AddressedClient(broker.bootstrap, source, client_id)


def ask(client: AddressedClient, api: ApiKey, version: int, **values: Any) -> Any:
    return client.call(build(API_BY_KEY[api].request_class(), values), version)


def set_quota(broker: BrokerProcess, entity: dict[str, str | None], **quotas: float | None) -> None:
    parts = [EntityData(kind.replace("_", "-"), name) for kind, name in entity.items()]
    ops = [OpData(key, value or 0.0, remove=value is None) for key, value in quotas.items()]
    with client_of(broker, "admin") as admin:
        response = admin.call(AlterClientQuotasRequest([RequestEntryData(parts, ops)]), 1)
        assert [entry.error_code for entry in response.entries] == [0], response


def produce(client: AddressedClient, size: int, version: int = 9) -> int:
    """Return the throttle time."""
    records = bytes(build_batch([NewRecord(value=b"v" * size, timestamp=1)]))
    topic = {"name": TOPIC, "partition_data": [{"index": 0, "records": records}]}
    response = ask(client, ApiKey.PRODUCE, version, acks=1, timeout_ms=5000, topic_data=[topic])
    assert response.responses[0].partition_responses[0].error_code == 0
    return int(response.throttle_time_ms)


def fetch(client: AddressedClient, max_bytes: int, version: int = 12) -> int:
    partition = {"partition": 0, "partition_max_bytes": max_bytes}
    topics = [{"topic": TOPIC, "partitions": [partition]}]
    response = ask(client, ApiKey.FETCH, version, topics=topics, max_bytes=max_bytes)
    assert all(topic.partitions[0].error_code == 0 for topic in response.responses)
    return int(response.throttle_time_ms)


def seconds_until_answered(client: AddressedClient) -> float:
    began = time.monotonic()
    client.call(ApiVersionsRequest(client_software_name="test", client_software_version="1"), 3)
    return time.monotonic() - began


@pytest.mark.parametrize("version", [3, 8, 9, 12])
def test_a_producer_above_its_quota_is_answered_and_then_muted(broker: BrokerProcess, version: int) -> None:
    name = f"producer-{version}"
    set_quota(broker, {"client_id": name}, producer_byte_rate=20_000.0)
    with client_of(broker, name) as client, client_of(broker, "another") as other:
        assert produce(client, 1_000, version) == 0
        throttle_ms = produce(client, 30_000, version)
        assert 300 <= throttle_ms <= 700, "31 kB in a second, where 20 kB are allowed"
        assert seconds_until_answered(other) < throttle_ms / 1000 + LATE_S
        assert throttle_ms / 1000 - 0.2 <= seconds_until_answered(client) < throttle_ms / 1000 + LATE_S
        assert produce(other, 30_000, version) == 0
    set_quota(broker, {"client_id": name}, producer_byte_rate=None)


def test_a_producer_without_acks_is_muted_too(broker: BrokerProcess) -> None:
    set_quota(broker, {"client_id": "silent"}, producer_byte_rate=20_000.0)
    with client_of(broker, "silent") as client:
        records = bytes(build_batch([NewRecord(value=b"v" * 30_000, timestamp=1)]))
        topic = {"name": TOPIC, "partition_data": [{"index": 0, "records": records}]}
        message = build(API_BY_KEY[ApiKey.PRODUCE].request_class(), {"acks": 0, "topic_data": [topic]})
        client.send(message, 9)
        assert 0.3 <= seconds_until_answered(client) < 0.5 + LATE_S
    set_quota(broker, {"client_id": "silent"}, producer_byte_rate=None)


@pytest.mark.parametrize("version", [4, 12])
def test_a_consumer_above_its_quota_is_throttled(broker: BrokerProcess, version: int) -> None:
    with client_of(broker, "filler") as filler:
        produce(filler, 100_000)
    name = f"consumer-{version}"
    set_quota(broker, {"user": "ANONYMOUS", "client_id": name}, consumer_byte_rate=50_000.0)
    with client_of(broker, name) as client:
        throttle_ms = 0
        while throttle_ms < 100:  # what fits into the window is sent first
            throttle_ms = fetch(client, 1_000_000, version)
        assert seconds_until_answered(client) >= throttle_ms / 1000 - 0.2
    set_quota(broker, {"user": "ANONYMOUS", "client_id": name}, consumer_byte_rate=None)


def fetched(client: AddressedClient, topic: str, session: tuple[int, int], *, is_named: bool = True) -> Any:
    """Fetch from the beginning, in a session."""
    topics = [{"topic": topic, "partitions": [{"partition": 0, "partition_max_bytes": 1_000_000}]}] if is_named else []
    session_id, epoch = session
    return ask(client, ApiKey.FETCH, 12, topics=topics, max_bytes=1_000_000, session_id=session_id, session_epoch=epoch)


def records_size(response: Any) -> int:
    return sum(len(data.records or b"") for topic in response.responses for data in topic.partitions)


def test_a_fetch_above_the_quota_is_empty_and_comes_again(broker: BrokerProcess) -> None:
    topic = "quotas-empty"
    with client_of(broker, "filler") as filler:
        created = [{"name": topic, "num_partitions": 1, "replication_factor": 1}]
        ask(filler, ApiKey.CREATE_TOPICS, 7, topics=created, timeout_ms=10_000)
        for _ in range(4):
            records = bytes(build_batch([NewRecord(value=b"v" * 10_000, timestamp=1)]))
            data = {"name": topic, "partition_data": [{"index": 0, "records": records}]}
            ask(filler, ApiKey.PRODUCE, 9, acks=1, timeout_ms=5000, topic_data=[data])
    set_quota(broker, {"client_id": "sipping"}, consumer_byte_rate=25_000.0)
    with client_of(broker, "sipping") as client:
        first = fetched(client, topic, (0, 0))
        while not first.responses:  # with its header, it is a little above the quota
            assert (first.session_id, first.error_code) == (0, 0)
            assert first.throttle_time_ms > 0
            first = fetched(client, topic, (0, 0))
        assert 20_000 < records_size(first) <= 25_000, "no more than the quota allows at once"
        assert first.session_id > 0
        empty, epoch = 0, 1
        again = fetched(client, topic, (first.session_id, epoch))
        while not records_size(again):
            assert again.responses == []
            assert again.throttle_time_ms > 0
            assert again.session_id == first.session_id
            empty, epoch = empty + 1, epoch + 1
            again = fetched(client, topic, (first.session_id, epoch), is_named=False)
        assert empty > 0
        assert again.session_id == first.session_id
    read = confluent_kafka.Consumer(
        {"bootstrap.servers": broker.bootstrap, "client.id": "sipping", "group.id": topic, "check.crcs": True}
    )
    read.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    messages = read.consume(4, timeout=30)
    assert [message.offset() for message in messages] == [0, 1, 2, 3]
    read.close()
    set_quota(broker, {"client_id": "sipping"}, consumer_byte_rate=None)


def test_clients_share_the_quota_of_their_user(broker: BrokerProcess) -> None:
    set_quota(broker, {"user": "ANONYMOUS"}, producer_byte_rate=20_000.0)
    with client_of(broker, "first") as first, client_of(broker, "second") as second:
        assert produce(first, 15_000) == 0
        assert produce(second, 15_000) > 0
    set_quota(broker, {"user": "ANONYMOUS"}, producer_byte_rate=None)


def test_request_percentage_throttles_for_a_window_at_most(broker: BrokerProcess) -> None:
    set_quota(broker, {"client_id": "busy"}, request_percentage=0.001)
    with client_of(broker, "busy") as client:
        throttle_ms = client.call(ListGroupsRequest(), 4).throttle_time_ms
        assert 0 < throttle_ms <= 1000
        assert client.call(ListGroupsRequest(), 4).throttle_time_ms == 1000
    set_quota(broker, {"client_id": "busy"}, request_percentage=None)
    with client_of(broker, "busy") as client:
        assert client.call(ListGroupsRequest(), 4).throttle_time_ms == 0


def test_connections_of_an_address_wait_for_their_quota(broker: BrokerProcess) -> None:
    set_quota(broker, {"ip": "127.0.0.9"}, connection_creation_rate=2.0)
    clients = []
    began = time.monotonic()
    try:
        for _ in range(4):
            clients.append(client_of(broker, "many", "127.0.0.9"))
            seconds_until_answered(clients[-1])
        assert time.monotonic() - began >= 0.8, "two at once, then two a second"
        with client_of(broker, "many", "127.0.0.10") as other:
            assert seconds_until_answered(other) < LATE_S
    finally:
        for client in clients:
            client.__exit__()
        set_quota(broker, {"ip": "127.0.0.9"}, connection_creation_rate=None)


def create(client: AddressedClient, name: str, partitions: int, version: int = 7) -> tuple[int, int]:
    topics = [{"name": name, "num_partitions": partitions, "replication_factor": 1}]
    response = ask(client, ApiKey.CREATE_TOPICS, version, topics=topics, timeout_ms=10_000)
    return int(response.topics[0].error_code), int(response.throttle_time_ms)


def test_the_controller_refuses_mutations_above_their_quota(broker: BrokerProcess) -> None:
    """Two windows at 2 a second: 4 partitions may be created at once, and more are owed before any is refused."""
    set_quota(broker, {"client_id": "maker"}, controller_mutation_rate=2.0)
    with client_of(broker, "maker") as client:
        assert create(client, "mutations-1", 6) == (0, 0)
        code, throttle_ms = create(client, "mutations-2", 1)
        assert code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert 0 < throttle_ms <= 1000
        assert seconds_until_answered(client) >= throttle_ms / 1000 - 0.3
        assert create(client, "mutations-2", 1) == (0, 0)
        response = ask(client, ApiKey.DELETE_TOPICS, 5, topic_names=["mutations-1"], timeout_ms=10_000)
        assert response.responses[0].error_code in {0, ErrorCode.THROTTLING_QUOTA_EXCEEDED}
    set_quota(broker, {"client_id": "maker"}, controller_mutation_rate=None)


def test_older_clients_are_throttled_after_their_mutations(broker: BrokerProcess) -> None:
    set_quota(broker, {"client_id": "old-maker"}, controller_mutation_rate=4.0)
    with client_of(broker, "old-maker") as client:
        assert create(client, "old-mutations-1", 8, version=5) == (0, 0)
        code, throttle_ms = create(client, "old-mutations-2", 2, version=5)
        assert code == 0
        assert 0 < throttle_ms <= 500
    set_quota(broker, {"client_id": "old-maker"}, controller_mutation_rate=None)


def test_a_controller_counts_mutations_of_clients_of_all_brokers(start_cluster: StartCluster) -> None:
    cluster = start_cluster(3, {"controller.quota.window.num": 2, "default.replication.factor": 1})
    addresses = cluster.bootstrap.split(",")
    entity = RequestEntryData([EntityData("client-id", "maker")], [OpData("controller_mutation_rate", 1.0)])
    with AddressedClient(addresses[0], "127.0.0.1") as admin:
        assert admin.call(AlterClientQuotasRequest([entity]), 1).entries[0].error_code == 0

    def outcomes(round_number: int) -> list[int]:
        codes = []
        for number, address in enumerate(addresses):
            with AddressedClient(address, "127.0.0.1", "maker") as client:
                codes.append(create(client, f"cluster-mutations-{round_number}-{number}", 3)[0])
        return codes

    assert ErrorCode.THROTTLING_QUOTA_EXCEEDED in outcomes(0)
