"""Requests of every kind about a topic with thousands of partitions, a group with thousands of offsets and one with
thousands of members: no turn of the data loop is long.

To end a transaction with 10,000 partitions once took 0.7 s in one turn, and to delete the records of 10,000 partitions
two minutes.
"""

from collections.abc import Callable

import pytest
import wire_connection
from large_cluster_requests import Asked, LargeCluster, changes, commit_of_all, questions, transaction
from scene import MEGABYTE, Scene
from waiting import wait_until
from wire_connection import Connection

from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from sskafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from sskafka.wire.messages.find_coordinator import FindCoordinatorRequest
from sskafka.wire.messages.init_producer_id import InitProducerIdRequest
from sskafka.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

CPU_MS_MAX = 100
"""Collections of garbage take up to 30 ms on a broker with 10,000 partitions, and the first request of a kind imports
its handler."""
RSS_GROWTH_MAX = 400 * MEGABYTE
TOPIC, GROUP, OTHER_GROUP, MEMBERS_GROUP, TRANSACTION = "large", "offsets", "other-offsets", "members", "transaction"
MEMBERS = 1_000


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_connection, "TIMEOUT_S", 120)


def create(connection: Connection, partitions: int) -> LargeCluster:
    wanted = CreatableTopic(TOPIC, partitions, 1)
    (created,) = connection.call(CreateTopicsRequest(topics=[wanted], timeout_ms=60_000), 7).topics
    assert created.error_code == ErrorCode.NONE, created
    listed = [ListOffsetsPartition(index, -1, -1) for index in range(partitions)]
    every = ListOffsetsRequest(-1, 0, [ListOffsetsTopic(TOPIC, listed)])
    wait_until(
        lambda: not any(part.error_code for part in connection.call(every, 9).topics[0].partitions),
        "all partitions have leaders",
        120,
    )
    return LargeCluster(TOPIC, created.topic_id, partitions, GROUP, OTHER_GROUP, MEMBERS_GROUP)


def commit_offsets(connection: Connection, cluster: LargeCluster, group: str) -> None:
    message, version = commit_of_all(cluster, group)

    def is_committed() -> bool:
        (topic,) = connection.call(message, version).topics
        return {part.error_code for part in topic.partitions} == {ErrorCode.NONE}

    wait_until(is_committed, "the offsets are committed")


def join(connection: Connection, members: int) -> None:
    for number in range(members):
        request = ConsumerGroupHeartbeatRequest(
            MEMBERS_GROUP,
            f"member-{number}",
            0,
            rebalance_timeout_ms=600_000,
            subscribed_topic_names=[TOPIC],
            topic_partitions=[],
        )
        assert connection.call(request, 1).error_code == ErrorCode.NONE


def begin_transaction(connection: Connection) -> tuple[int, int]:
    connection.call(FindCoordinatorRequest(key_type=1, coordinator_keys=[TRANSACTION]), 4)
    producers: list[tuple[int, int]] = []

    def is_there() -> bool:
        answer = connection.call(InitProducerIdRequest(TRANSACTION, 60_000), 4)
        producers[:] = [(answer.producer_id, answer.producer_epoch)]
        return bool(answer.error_code == ErrorCode.NONE)

    wait_until(is_there, "the producer has an id", 60)
    return producers[0]


def ask(scene: Scene, connection: Connection, asked: Asked) -> None:
    message, version = asked
    connection.call(message, version)
    measured = scene.measure()
    what = f"{type(message).__name__} v{version}: {measured}"
    assert measured.longest_turn_cpu_ms <= CPU_MS_MAX, what
    assert measured.rss_growth_bytes <= RSS_GROWTH_MAX, what


@pytest.mark.parametrize(
    "partitions", [pytest.param(2_000, id="2000"), pytest.param(10_000, id="10000", marks=pytest.mark.long_attack)]
)
def test_requests_about_much(partitions: int, start_scene: Callable[..., Scene]) -> None:
    scene = start_scene({"offsets.topic.num.partitions": 1})
    with scene.connect() as connection:
        cluster = create(connection, partitions)
        connection.call(FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]), 4)
        for group in (GROUP, OTHER_GROUP):
            commit_offsets(connection, cluster, group)
        join(connection, MEMBERS)
        producer = begin_transaction(connection)
        scene.begin()
        for asked in (
            *questions(cluster),
            *transaction(cluster, TRANSACTION, producer),
            *questions(cluster),
            *changes(cluster),
        ):
            ask(scene, connection, asked)
        assert connection.topic_metadata(TOPIC).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        scene.begin()
        scene.check(RSS_GROWTH_MAX)
