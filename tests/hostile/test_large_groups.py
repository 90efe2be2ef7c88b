"""Consumer groups that subscribe to thousands of topics: no turn of the data loop is long while they are assigned."""

from collections.abc import Callable

import pytest
import wire_connection
from scene import MEGABYTE, Scene
from waiting import wait_until
from wire_connection import Connection

from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from sskafka.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from sskafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from sskafka.wire.messages.find_coordinator import FindCoordinatorRequest

TOPICS = 5_000
CREATED_AT_ONCE = 500
GROUPS = 4
CPU_MS_MAX = 50
NAMES = [f"topic-{number:05}" for number in range(TOPICS)]


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_connection, "TIMEOUT_S", 60)


def create_topics(connection: Connection) -> None:
    for start in range(0, TOPICS, CREATED_AT_ONCE):
        topics = [CreatableTopic(name, 1, 1) for name in NAMES[start : start + CREATED_AT_ONCE]]
        answer = connection.call(CreateTopicsRequest(topics=topics, timeout_ms=60_000), 7)
        assert not any(topic.error_code for topic in answer.topics)


class Member:
    """A consumer that takes what it is assigned."""

    def __init__(self, connection: Connection, group: str, number: int, regex: str | None = None) -> None:
        self._connection = connection
        self._regex = regex
        self._group = group
        self._id = f"{group}-{number}"
        self.epoch = 0
        self.owned: list[TopicPartitions] = []

    def join(self) -> ErrorCode:
        names = NAMES if self._regex is None else []
        return self._send(
            subscribed_topic_names=names,
            subscribed_topic_regex=self._regex,
            topic_partitions=[],
            rebalance_timeout_ms=60_000,
        )

    def beat(self) -> ErrorCode:
        return self._send(topic_partitions=self.owned)

    def _send(self, **fields: object) -> ErrorCode:
        request = ConsumerGroupHeartbeatRequest(self._group, self._id, self.epoch, **fields)  # type: ignore[arg-type]
        answer: ConsumerGroupHeartbeatResponse = self._connection.call(request, 1)
        if not answer.error_code:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.owned = answer.assignment.topic_partitions
        return ErrorCode(answer.error_code)


@pytest.mark.long
def test_groups_with_thousands_of_topics(start_scene: Callable[..., Scene]) -> None:
    scene = start_scene()
    with scene.connect() as connection:
        create_topics(connection)
        connection.call(FindCoordinatorRequest(key_type=0, coordinator_keys=["group"]), 4)
        warm_up = Member(connection, "warm-up", 0)
        wait_until(lambda: warm_up.join() == ErrorCode.NONE, "the coordinator is loaded")
        wait_until(lambda: warm_up.beat() == ErrorCode.NONE and len(warm_up.owned) == TOPICS, "it is assigned")
        scene.begin()
        members = [
            Member(connection, f"group-{number // 2}", number % 2, None if number // 2 else f"topic-.*|{number}")
            for number in range(2 * GROUPS)
        ]
        for member in members:
            assert member.join() == ErrorCode.NONE

        def are_all_assigned() -> bool:
            assert all(member.beat() == ErrorCode.NONE for member in members)
            return all(len(member.owned) == TOPICS // 2 for member in members)

        wait_until(are_all_assigned, "all groups are assigned", 60)
        names = [f"group-{number}" for number in range(GROUPS)]
        described = connection.call(ConsumerGroupDescribeRequest(group_ids=names), 1).groups
        assert [len(member.assignment.topic_partitions) for group in described for member in group.members] == [
            TOPICS // 2
        ] * len(members)
    measured = scene.check(200 * MEGABYTE)
    assert measured.longest_turn_cpu_ms <= CPU_MS_MAX, measured
