"""Regular expressions that are slow on purpose, with topics whose names make them slower."""

from collections.abc import Callable
from random import Random

import pytest
from scene import MEGABYTE, Scene
from waiting import wait_until
from wire_connection import Connection

from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from sskafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from sskafka.wire.messages.find_coordinator import FindCoordinatorRequest

TOPICS = 200
BRACKETS = "(" * 10_000 + ")" * 10_000
"""Took two seconds for each topic while its groups were captured."""
MANY_STATES = "([ab]*a[ab]{1,240}b.*|.*b[ab]{1,240}a.*){3}"
"""Takes 4 ms for each of the names below."""


def create_topics(connection: Connection) -> None:
    random = Random(7)
    names = ["".join(random.choices("ab", k=240)) for _ in range(TOPICS)]
    topics = [CreatableTopic(name, num_partitions=1, replication_factor=1) for name in names]
    assert not any(topic.error_code for topic in connection.call(CreateTopicsRequest(topics=topics), 7).topics)


def subscribe(connection: Connection, group: str, regex: str) -> ErrorCode:
    request = ConsumerGroupHeartbeatRequest(group, f"member-of-{group}", 0, rebalance_timeout_ms=10_000)
    request.subscribed_topic_regex, request.topic_partitions = regex, []
    return ErrorCode(connection.call(request, 1).error_code)


@pytest.mark.parametrize("regex", [BRACKETS, MANY_STATES], ids=["brackets", "many states"])
def test_slow_patterns_are_refused(start_scene: Callable[..., Scene], regex: str) -> None:
    scene = start_scene()
    with scene.connect() as connection:
        create_topics(connection)
        connection.call(FindCoordinatorRequest(key_type=0, coordinator_keys=["group"]), 4)
        wait_until(lambda: subscribe(connection, "other", "polite") == ErrorCode.NONE, "the coordinator is loaded")
        scene.begin()
        for number in range(3):
            assert subscribe(connection, f"group-{number}", regex) == ErrorCode.INVALID_REGULAR_EXPRESSION
        assert subscribe(connection, "after", "[ab]*a") == ErrorCode.NONE
    scene.check(50 * MEGABYTE)
