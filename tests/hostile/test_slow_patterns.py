"""Regular expressions that are slow on purpose, with topics whose names make them slower."""

import threading
import time
from collections.abc import Callable
from random import Random
from urllib.parse import quote

import httpx
import pytest
from broker_process import StartBroker
from scene import MEGABYTE, Scene
from waiting import wait_until
from wire_connection import PRODUCE_VERSION, Connection, produce_request, values_batch

from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from sskafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from sskafka.wire.messages.find_coordinator import FindCoordinatorRequest
from sskafka.wire.messages.init_producer_id import InitProducerIdRequest
from sskafka.wire.messages.list_transactions import ListTransactionsRequest

TOPICS = 200
BRACKETS = "(" * 10_000 + ")" * 10_000
"""Took two seconds for each topic while its groups were captured."""
MANY_STATES = "([ab]*a[ab]{1,240}b.*|.*b[ab]{1,240}a.*){3}"
"""Takes 4 ms for each of the names below."""
SLOW_TO_COMPILE = r"(?i)\pL{99}|.{1000}|([^\pL]*){99}|\PC{1000}|.{99}"
"""Took 0.3 seconds to compile."""
CPU_MS_MAX = 60
LIVEZ_S_MAX = 1.0


def create_topics(connection: Connection) -> None:
    random = Random(7)
    names = ["".join(random.choices("ab", k=240)) for _ in range(TOPICS)]
    topics = [CreatableTopic(name, num_partitions=1, replication_factor=1) for name in names]
    assert not any(topic.error_code for topic in connection.call(CreateTopicsRequest(topics=topics), 7).topics)


def subscribe(connection: Connection, group: str, regex: str) -> ErrorCode:
    request = ConsumerGroupHeartbeatRequest(group, f"member-of-{group}", 0, rebalance_timeout_ms=10_000)
    request.subscribed_topic_regex, request.topic_partitions = regex, []
    return ErrorCode(connection.call(request, 1).error_code)


def heartbeat(connection: Connection, group: str) -> ErrorCode:
    return ErrorCode(connection.call(ConsumerGroupHeartbeatRequest(group, f"member-of-{group}", 1), 1).error_code)


def is_refused(connection: Connection, group: str, regex: str) -> bool:
    """A pattern is refused at once, or when it took too much time in the background."""
    code = subscribe(connection, group, regex)
    if code == ErrorCode.NONE:
        refused = ErrorCode.INVALID_REGULAR_EXPRESSION
        wait_until(lambda: heartbeat(connection, group) == refused, "the pattern is refused")
    return code in {ErrorCode.NONE, ErrorCode.INVALID_REGULAR_EXPRESSION}


@pytest.mark.parametrize(
    "regex", [BRACKETS, MANY_STATES, SLOW_TO_COMPILE], ids=["brackets", "many states", "slow to compile"]
)
def test_slow_patterns_are_refused(start_scene: Callable[..., Scene], regex: str) -> None:
    scene = start_scene()
    with scene.connect() as connection:
        create_topics(connection)
        connection.call(FindCoordinatorRequest(key_type=0, coordinator_keys=["group"]), 4)
        wait_until(lambda: subscribe(connection, "other", "polite") == ErrorCode.NONE, "the coordinator is loaded")
        scene.begin()
        for number in range(3):
            assert is_refused(connection, f"group-{number}", regex)
        assert subscribe(connection, "after", "[ab]*a") == ErrorCode.NONE
    measured = scene.check(50 * MEGABYTE)
    assert measured.longest_turn_cpu_ms <= CPU_MS_MAX, measured


def test_patterns_of_transactional_ids_are_refused_if_they_are_slow(start_scene: Callable[..., Scene]) -> None:
    """One id once took 140 ms, and nothing came in between."""
    scene = start_scene()
    ids = ["".join(Random(seed).choices("ab", k=32_000)) for seed in range(5)]
    with scene.connect() as connection:
        connection.call(FindCoordinatorRequest(key_type=1, coordinator_keys=["id"]), 4)
        for name in [*ids, *(f"orders-{number}" for number in range(5))]:
            wait_until(
                lambda name=name: not connection.call(InitProducerIdRequest(name, 60_000), 4).error_code,
                "the coordinator is loaded",
            )
        assert len(connection.call(ListTransactionsRequest(), 2).transaction_states) == 10
        scene.begin()
        for pattern in ("[ab]*a[ab]{980}c[ab]*", "[ab]*a[ab]{90}c[ab]*"):
            answer = connection.call(ListTransactionsRequest(transactional_id_pattern=pattern), 2)
            assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
        listed = connection.call(ListTransactionsRequest(transactional_id_pattern="(orders|payments)-[0-3]"), 2)
        assert sorted(found.transactional_id for found in listed.transaction_states) == [
            f"orders-{number}" for number in range(4)
        ]
    measured = scene.check(50 * MEGABYTE)
    assert measured.longest_turn_cpu_ms <= CPU_MS_MAX, measured


def test_slow_filters_do_not_block_the_http_server(start_broker: StartBroker) -> None:
    """Each expression once took two seconds for such a value."""
    broker = start_broker({"http.listener": "127.0.0.1:0"})
    value = "".join(Random(7).choices("ab", k=900_000)).encode()
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("values", 1)
        for _ in range(3):
            request = produce_request("values", bytes(values_batch(value)))
            (topic,) = connection.call(request, PRODUCE_VERSION).responses
            assert not topic.partition_responses[0].error_code
    text = 'value matches "a[ab]{450}c" or value matches "b[ab]{450}c"'
    path = f"/api/v1/topics/values/records/search?filter={quote(text)}"
    with httpx.Client(base_url=f"http://{broker.http}", trust_env=False, timeout=60) as client:
        client.get("/livez")
        found: list[str] = []
        search = threading.Thread(target=lambda: found.append(client.get(path).text))
        search.start()
        longest_s = 0.0
        while search.is_alive():
            began = time.monotonic()
            assert client.get("/livez").json() == {"status": "alive"}
            longest_s = max(longest_s, time.monotonic() - began)
        search.join()
    assert '"looked_at": 3, "matched": 0' in found[0]
    assert longest_s < LIVEZ_S_MAX
