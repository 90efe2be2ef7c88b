"""Twenty members that come and go while the broker that coordinates them is killed.

What was promised is read from the log of the group itself: no generation has two assignments, no assignment gives a
partition twice, and no committed offset goes back.
"""

import sys
import time

import pytest
from cluster_processes import ClusterProcesses, StartCluster
from group_churn import Churn, producing
from waiting import wait_until
from wire_connection import Connection, records_in

from sskafka.coordination.internal_topics import partition_of
from sskafka.groups import log_records
from sskafka.model.settings_table.profiles import FAST_FAILOVER
from sskafka.records.record import Record
from sskafka.wire.codec import decode
from sskafka.wire.messages.consumer_protocol import ConsumerProtocolAssignment
from sskafka.wire.messages.describe_groups import DescribeGroupsRequest
from sskafka.wire.messages.find_coordinator import FindCoordinatorRequest
from sskafka.wire.messages.group_records import GroupMetadataValue

TOPIC = "numbers"
GROUP = "churning"
OFFSETS = "__consumer_offsets"
OFFSETS_PARTITIONS = 6
PARTITIONS = 24
MEMBERS = 20
STABLE_SECONDS_MAX = 10

SETTINGS = {
    **FAST_FAILOVER,
    "offsets.topic.num.partitions": OFFSETS_PARTITIONS,
    "group.initial.rebalance.delay.ms": 1_000,
}


def coordinator(cluster: ClusterProcesses) -> int:
    return int(cluster.ask(FindCoordinatorRequest(GROUP), 0).node_id)


def described(cluster: ClusterProcesses) -> dict[str, list[int]] | None:
    """Partitions by client id of the stable group's members; None while it is not stable or nobody coordinates it."""
    node_id = coordinator(cluster)
    if node_id not in cluster.running():
        return None
    (group,) = cluster.ask(DescribeGroupsRequest([GROUP]), 4, node_id).groups
    if group.error_code or group.group_state != "Stable":
        return None
    return {member.client_id: assigned(member.member_assignment) for member in group.members}


def assigned(assignment: bytes) -> list[int]:
    if not assignment:
        return []
    decoded = decode(ConsumerProtocolAssignment, 0, assignment, 2, allow_trailing=True)
    return [partition for topic in decoded.assigned_partitions for partition in topic.partitions]


def wait_for_all(cluster: ClusterProcesses, churn: Churn) -> float:
    """Seconds until exactly the living members share all partitions."""
    began = time.monotonic()

    def is_shared() -> bool:
        shares = described(cluster)
        living = {member.client_id for member in churn.members}
        return shares is not None and set(shares) == living and sum(map(len, shares.values())) == PARTITIONS

    wait_until(is_shared, "the group is stable", 60)
    return time.monotonic() - began


def group_log(cluster: ClusterProcesses) -> list[Record]:
    partition = partition_of(GROUP, OFFSETS_PARTITIONS)
    with Connection(cluster.address(coordinator(cluster))) as connection:
        found: list[Record] = []
        while True:
            offset = found[-1].offset + 1 if found else 0
            data = connection.fetch(OFFSETS, offset, partition)
            if offset >= data.high_watermark:
                return found
            found += [record for record in records_in(data) if record.offset >= offset]


def check_log(records: list[Record], promised: dict[int, int]) -> tuple[int, int]:
    """Counts generations and commits."""
    generations: dict[int, dict[int, str]] = {}
    offsets: dict[int, int] = {}
    commits = 0
    for record in records:
        assert record.key is not None
        if log_records.record_type(record.key) == log_records.OFFSET and record.value is not None:
            partition = log_records.read_offset_key(record.key)[1].partition
            offset = log_records.read_offset_value(record.value).offset
            assert offset >= offsets.get(partition, 0), (
                f"record {record.offset} of the group's log takes partition {partition} back to {offset}"
            )
            offsets[partition] = offset
            commits += 1
        elif log_records.record_type(record.key) == log_records.GROUP and record.value is not None:
            value = log_records.decode_value(GroupMetadataValue, record.value)
            owners: dict[int, str] = {}
            for member in value.members:
                for partition in assigned(member.assignment):
                    assert partition not in owners, (
                        f"record {record.offset} of the group's log gives partition {partition} to "
                        f"{owners[partition]} and {member.member_id} in generation {value.generation}"
                    )
                    owners[partition] = member.member_id
            known = generations.setdefault(value.generation, owners)
            assert known == owners, (
                f"record {record.offset} of the group's log gives generation {value.generation} another assignment"
            )
    lost = {
        partition: f"committed {offset}, in the log {offsets.get(partition)}"
        for partition, offset in promised.items()
        if offsets.get(partition, 0) < offset
    }
    assert not lost, f"commits that were acknowledged are not in the group's log: {lost}"
    return len(generations), commits


@pytest.mark.parametrize("seed", [1, 2])
def test_the_coordinator_is_killed_under_churn(start_cluster: StartCluster, seed: int) -> None:
    cluster = start_cluster(3, SETTINGS)
    cluster.create_topic(TOPIC, PARTITIONS, min_insync_replicas=2)
    churn = Churn(cluster.bootstrap, GROUP, TOPIC, MEMBERS, seed)
    try:
        with producing(cluster.bootstrap, TOPIC, PARTITIONS):
            wait_for_all(cluster, churn)
            for _ in range(2):
                victim = coordinator(cluster)
                churn.replace_for(3)
                cluster.kill(victim)
                churn.replace_for(3)
                seconds = wait_for_all(cluster, churn)
                assert seconds <= STABLE_SECONDS_MAX, f"stable only after {seconds:.1f} s"
                cluster.start_broker(victim)
        generations, commits = check_log(group_log(cluster), churn.promises.highest)
        sys.stderr.write(f"{generations} generations, {commits} offsets committed; stable after {seconds:.1f} s\n")
        assert generations > 5
        assert churn.promises.count > 100
    finally:
        churn.close()
