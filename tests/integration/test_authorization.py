"""ACLs on running brokers: administration, forwarding, revocation, restarts, the ADR-0011 server."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from acl_lab import BROKER, CLIENT, SETTINGS, AclLab, AddressedClient, acl, error_codes
from acl_requests import GROUP, TOPIC, build, request_for
from adr_connection import AdrConnection, adr_address
from broker_process import BrokerProcess, StartBroker
from cluster_processes import StartCluster
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from waiting import wait_until

from sskafka.controller.envelopes import open_answer, put_into_envelope
from sskafka.model.acl import AclOperation as Operation
from sskafka.model.acl import Caller
from sskafka.model.acl import ResourceType as Resource
from sskafka.model.errors import ErrorCode
from sskafka.model.errors import KafkaError as WireError
from sskafka.servers.kafka.acl_rules import CREATE_TOPIC, DESCRIBE_TOPIC, READ_GROUP, READ_TOPIC, WRITE_TOPIC
from sskafka.wire.adr import Failure, Produce, Produced
from sskafka.wire.apis import API_BY_KEY, ApiKey
from sskafka.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from sskafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from sskafka.wire.messages.envelope import EnvelopeRequest
from sskafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

TIMEOUT_S = 20
STANDARD = SETTINGS["authorizer.class.name"]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(tmp_path_factory.mktemp("acls"), {**SETTINGS, "adr.listener": "127.0.0.1:0"})
    try:
        yield broker.start()
    finally:
        broker.close()


@pytest.fixture(scope="module")
def lab(broker: BrokerProcess) -> Iterator[AclLab]:
    lab = AclLab(broker.bootstrap)
    yield lab
    lab.close()


def test_confluent_kafka_manages_acls(start_broker: StartBroker) -> None:
    settings = {"authorizer.class.name": STANDARD, "super.users": "User:ANONYMOUS"}
    admin = AdminClient({"bootstrap.servers": start_broker(settings).bootstrap})
    wanted = AclBinding(
        ResourceType.TOPIC,
        "orders",
        ResourcePatternType.PREFIXED,
        "User:alice",
        "10.0.0.0/8",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    everything = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    (created,) = admin.create_acls([wanted]).values()
    assert created.result(TIMEOUT_S) is None
    assert admin.describe_acls(everything).result(TIMEOUT_S) == [wanted]
    (deleted,) = admin.delete_acls([everything]).values()
    assert deleted.result(TIMEOUT_S) == [wanted]
    assert admin.describe_acls(everything).result(TIMEOUT_S) == []


def test_a_librdkafka_producer_hears_that_it_may_not_write(start_broker: StartBroker) -> None:
    broker = start_broker({"authorizer.class.name": STANDARD, "super.users": "User:admin"})
    errors: list[KafkaError] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, "error_cb": lambda _: None})
    producer.produce("orders", b"v", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    assert errors[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    line = "denied: User:ANONYMOUS from 127.0.0.1 may not DESCRIBE TOPIC orders (Metadata on listener PLAINTEXT)"
    assert broker.log.count("denied:") == 1
    assert line in broker.log


def test_a_revoked_acl_ends_a_fetch_that_waits(lab: AclLab) -> None:
    lab.grant(READ_TOPIC)
    waiting = FetchRequest(
        max_wait_ms=15_000,
        min_bytes=1_000_000,
        topics=[FetchTopic(TOPIC, partitions=[FetchPartition(0, partition_max_bytes=1000)])],
    )
    with lab.client() as client:
        assert error_codes(client.call(FetchRequest(topics=waiting.topics), 12)) == {0}
        client.send(waiting, 12)
        lab.revoke_all()
        produce, version = request_for(ApiKey.PRODUCE, "")
        lab.administrator.call(produce, version)  # the waiting request looks at the partition again
        assert error_codes(client.receive(waiting, 12)) == {0, ErrorCode.TOPIC_AUTHORIZATION_FAILED}


def in_envelope(lab: AclLab, topic: str, caller: Caller | None) -> int:
    request = CreateTopicsRequest(topics=[CreatableTopic(topic, 1, 1)], timeout_ms=10_000)
    with AddressedClient(lab.bootstrap, BROKER) as node:
        response = open_answer(node.call(put_into_envelope(request, 7, caller), 0), ApiKey.CREATE_TOPICS, 7)
    return int(response.topics[0].error_code)


def test_the_principal_in_an_envelope_is_authorized(lab: AclLab) -> None:
    stranger = Caller("User:ANONYMOUS", CLIENT)
    lab.revoke_all()
    assert in_envelope(lab, "enveloped-1", stranger) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    lab.grant(CREATE_TOPIC, topic="enveloped-1")
    assert in_envelope(lab, "enveloped-1", stranger) == 0
    assert in_envelope(lab, "enveloped-2", stranger) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert in_envelope(lab, "enveloped-3", Caller("User:alice", BROKER)) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert in_envelope(lab, "enveloped-4", None) == 0, "the broker itself asks"


def test_cluster_operations_in_an_envelope_are_authorized(lab: AclLab) -> None:
    lab.revoke_all()
    request = build(API_BY_KEY[ApiKey.UNREGISTER_BROKER].request_class(), {"broker_id": 99})
    with AddressedClient(lab.bootstrap, BROKER) as node:
        envelope = put_into_envelope(request, 0, Caller("User:alice", "10.0.0.1"))
        response = open_answer(node.call(envelope, 0), ApiKey.UNREGISTER_BROKER, 0)
        assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        unreadable = EnvelopeRequest(envelope.request_data, b"\x00\x09", b"")
        with pytest.raises(WireError) as caught:
            open_answer(node.call(unreadable, 0), ApiKey.UNREGISTER_BROKER, 0)
    assert caught.value.code == ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE


def test_a_pattern_subscribes_only_to_topics_that_the_member_may_describe(lab: AclLab) -> None:
    lab.make_topic("pattern-open")
    lab.make_topic("pattern-secret")
    lab.grant(READ_GROUP, DESCRIBE_TOPIC, topic="pattern-open")
    joining = ConsumerGroupHeartbeatRequest(
        GROUP + "-regex",
        "member",
        0,
        rebalance_timeout_ms=5000,
        subscribed_topic_regex="pattern-.*",
        topic_partitions=[],
    )
    lab.create_acls([acl(Resource.GROUP, GROUP + "-regex", Operation.READ, CLIENT)])
    with lab.client() as client:
        joined = client.call(joining, 1)
        assert joined.error_code == 0, joined
        assert len(joined.assignment.topic_partitions) == 1, "one topic, not two"
        lab.create_acls([acl(Resource.TOPIC, "pattern-secret", Operation.DESCRIBE, CLIENT)])
        beating = ConsumerGroupHeartbeatRequest(GROUP + "-regex", "member", joined.member_epoch)

        def assigned() -> int:
            beat = client.call(beating, 1)
            assert beat.error_code == 0, beat
            beating.member_epoch = beat.member_epoch
            return len(beat.assignment.topic_partitions) if beat.assignment is not None else 0

        wait_until(lambda: assigned() == 2, "the topic that an ACL allows now", 30)


def test_unknown_topics_are_not_told_to_strangers(lab: AclLab) -> None:
    """A topic that does not exist and one that is forbidden look the same."""
    lab.revoke_all()
    with lab.client() as client:
        for name in (TOPIC, "no-such-topic"):
            fetch = FetchRequest(topics=[FetchTopic(name, partitions=[FetchPartition(0)])])
            assert error_codes(client.call(fetch, 12)) == {0, ErrorCode.TOPIC_AUTHORIZATION_FAILED}


def test_clients_of_the_adr_server_are_anonymous(lab: AclLab, broker: BrokerProcess) -> None:
    with AdrConnection(adr_address(broker)) as connection:
        assert isinstance(connection.ask(Produce(TOPIC, None, b"v")), Produced), "127.0.0.1 may do everything"
    with AdrConnection(adr_address(broker), source=CLIENT) as connection:
        lab.revoke_all()
        refused = connection.ask(Produce(TOPIC, None, b"v"))
        assert isinstance(refused, Failure)
        assert "User:ANONYMOUS may not WRITE topic" in refused.text
        lab.grant(WRITE_TOPIC)
        assert isinstance(connection.ask(Produce(TOPIC, None, b"v")), Produced)
        assert isinstance(connection.ask(Produce("adr-new", None, b"v")), Failure)


def test_acls_hold_after_a_restart(start_broker: StartBroker) -> None:
    broker = start_broker(SETTINGS)
    lab = AclLab(broker.bootstrap)
    lab.grant(READ_TOPIC)
    lab.close()
    broker.stop()
    broker.start()
    message, version = request_for(ApiKey.FETCH, "")
    with AddressedClient(broker.bootstrap, CLIENT) as client:
        assert error_codes(client.call(message, version)) == {0}
        message, version = request_for(ApiKey.PRODUCE, "")
        assert error_codes(client.call(message, version)) == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}


def test_every_broker_of_a_cluster_applies_and_forwards(start_cluster: StartCluster) -> None:
    cluster = start_cluster(3, {**SETTINGS, "default.replication.factor": 1})
    addresses = cluster.bootstrap.split(",")
    lab = AclLab(addresses[0], makes_resources=False)
    try:
        lab.grant(CREATE_TOPIC, topic="made-anywhere")
        topic = CreatableTopic("made-anywhere", 1, 1)
        wanted = CreateTopicsRequest(topics=[topic], timeout_ms=10_000, validate_only=True)
        other = CreateTopicsRequest(topics=[CreatableTopic("elsewhere", 1, 1)], timeout_ms=10_000)
        for address in addresses:
            with AddressedClient(address, CLIENT) as client:
                wait_until(lambda client=client: error_codes(client.call(wanted, 7)) == {0, 29}, "the ACL is applied")
                assert ErrorCode.TOPIC_AUTHORIZATION_FAILED in error_codes(client.call(other, 7))
    finally:
        lab.close()


def test_the_audit_log_has_what_was_allowed_and_denied(start_broker: StartBroker, tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    broker = start_broker({**SETTINGS, "audit.log": path})
    lab = AclLab(broker.bootstrap)
    lab.revoke_all()
    message, version = request_for(ApiKey.FETCH, "")
    with lab.client() as client:
        client.call(message, version)
    lab.close()
    broker.stop()
    written = [json.loads(line) for line in path.read_text().splitlines()]
    of_fetch = [line for line in written if line["host"] == CLIENT]
    assert [(line["api"], line["operation"], line["resource"], line["allowed"]) for line in of_fetch] == [
        ("Fetch", "READ", TOPIC, False)
    ]
    assert any(line["api"] == "CreateAcls" and line["allowed"] for line in written)
