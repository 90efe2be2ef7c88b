"""Consumer groups (KIP-848) that a broker reads from the other's __consumer_offsets, with members in every state."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmarks.brokers import Broker, BrokerKind
from programs import APACHE_KAFKA, SSKAFKA, JavaTools
from waiting import wait_until
from wire_connection import Connection

from sskafka.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from sskafka.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from sskafka.wire.messages.find_coordinator import FindCoordinatorRequest
from sskafka.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

CONFIGS = "kafka.admin.ConfigCommand"
SETTINGS = {"offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": "1"}
GROUP, TOPIC, PARTITIONS = "readers", "numbers", 4


def heartbeat(wire: Connection, member_id: str, epoch: int, **fields: Any) -> Any:
    return wire.call(ConsumerGroupHeartbeatRequest(GROUP, member_id, epoch, **fields), 1)


def join(wire: Connection, member_id: str, **fields: Any) -> Any:
    whole = {"rebalance_timeout_ms": 60_000, "topic_partitions": [], "subscribed_topic_names": [TOPIC], **fields}
    return heartbeat(wire, member_id, 0, **whole)


def described(wire: Connection) -> Any:
    """The group without the order of its members and topics, which is nobody's promise."""
    (group,) = wire.call(ConsumerGroupDescribeRequest([GROUP]), 1).groups
    group.members.sort(key=lambda member: member.member_id)
    for member in group.members:
        for assignment in (member.assignment, member.target_assignment):
            for topic in assignment.topic_partitions:
                topic.partitions.sort()
    return group


def committed(wire: Connection, member_id: str, epoch: int, partition: int) -> int:
    offsets = [OffsetCommitRequestPartition(partition, 5, -1, "")]
    request = OffsetCommitRequest(GROUP, epoch, member_id, topics=[OffsetCommitRequestTopic(TOPIC, partitions=offsets)])
    return int(wire.call(request, 9).topics[0].partitions[0].error_code)


def served(broker: Broker) -> Connection:
    wire = Connection(broker.bootstrap)
    wait_until(lambda: wire.call(FindCoordinatorRequest(GROUP), 2).error_code == 0, "there is a coordinator")
    return wire


def make_group(wire: Connection) -> int:
    """One member gives up partitions, one waits for them, a static one is away; gives the epoch of the first."""
    wire.create_topic(TOPIC, PARTITIONS)
    wait_until(lambda: join(wire, "a").error_code == 0, "the first member has joined")
    wait_until(lambda: heartbeat(wire, "a", 2).error_code == 0, "it is known")
    join(wire, "b")
    wait_until(lambda: heartbeat(wire, "b", 2).member_epoch == 3, "there is a new target")
    assert heartbeat(wire, "a", 2).member_epoch == 2, "it gives up partitions"
    join(wire, "s", instance_id="i", subscribed_topic_names=[], subscribed_topic_regex="nothing.*")
    heartbeat(wire, "s", -2, instance_id="i")
    return 2


@pytest.mark.parametrize(("writer", "reader"), [(APACHE_KAFKA, SSKAFKA), (SSKAFKA, APACHE_KAFKA)])
def test_consumer_groups_are_read_from_the_others_log(
    writer: str, reader: str, java: JavaTools, broker_kind: Callable[[str], BrokerKind], tmp_path: Path
) -> None:
    with broker_kind(writer).running(tmp_path / "written", SETTINGS) as broker, served(broker) as wire:
        epoch = make_group(wire)
        before = described(wire)
    assert (before.group_state, len(before.members)) == ("Reconciling", 3)
    (tmp_path / "read").mkdir()
    shutil.copytree(tmp_path / "written" / "data", tmp_path / "read" / "data")
    with broker_kind(reader).running(tmp_path / "read", SETTINGS) as broker, served(broker) as wire:
        wait_until(lambda: described(wire).error_code == 0, "the group is loaded")
        assert described(wire) == before
        giving = next(member for member in before.members if member.member_id == "a")
        given_up = {3, 2, 1, 0} - set(giving.target_assignment.topic_partitions[0].partitions)
        assert committed(wire, "a", epoch, min(given_up)) == 0, "what it has not given up yet"
        kept = giving.target_assignment.topic_partitions
        released = heartbeat(wire, "a", epoch, topic_partitions=kept)
        assert released.error_code == 0
        assert released.member_epoch >= 3, "the two hash topics differently, so the reader may begin an epoch"
        wait_until(lambda: heartbeat(wire, "b", 3).error_code == 0, "the other goes on")
        assert committed(wire, "a", epoch, kept[0].partitions[0]) == 0, "owned since then"


def test_settings_of_groups_are_altered_and_described(java: JavaTools, broker: Broker, topic: str) -> None:
    entity = ("--bootstrap-server", broker.bootstrap, "--entity-type", "groups", "--entity-name", topic)
    java.run(CONFIGS, *entity, "--alter", "--add-config", "consumer.session.timeout.ms=50000")
    shown = java.run(CONFIGS, *entity, "--describe")
    assert "consumer.session.timeout.ms=50000 sensitive=false" in shown
    assert "GROUP_CONFIG:consumer.session.timeout.ms=50000" in shown
    refused = java.fail(CONFIGS, *entity, "--alter", "--add-config", "consumer.session.timeout.ms=1")
    sentence = "consumer.session.timeout.ms must be greater than or equal to group.consumer.min.session.timeout.ms"
    assert sentence in refused
    java.run(CONFIGS, *entity, "--alter", "--delete-config", "consumer.session.timeout.ms")
    assert "50000" not in java.run(CONFIGS, *entity, "--describe")
