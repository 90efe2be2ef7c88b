"""What a broker keeps for clients that are gone, or that do not read, has bounds."""

import socket
from collections.abc import Callable
from contextlib import ExitStack

import adr_connection
import pytest
from adr_connection import AdrConnection, adr_address
from scene import MEGABYTE, POLITE_TOPIC, Scene
from wire_connection import values_batch

from sskafka.model.errors import ErrorCode
from sskafka.wire.adr import Consume, Consumed, encode_request
from sskafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from sskafka.wire.messages.find_coordinator import FindCoordinatorRequest
from sskafka.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol

pytestmark = pytest.mark.long

JOIN_VERSION = 3  # a member of these versions need not join twice
METADATA_BYTES = 1_900_000
JOINS = 20
SESSIONS = 13
FOLLOWER_SESSIONS = 40
SESSION_PARTITIONS = 19_000
READ_BYTES = 20 * MEGABYTE
READERS = 12
ADR_READERS = 100
ADR_PATIENCE_S = 60


def find_coordinator(scene: Scene) -> None:
    """Create the internal topic, which the first request for a coordinator does."""
    with scene.connect() as connection:
        connection.call(FindCoordinatorRequest(key_type=0, coordinator_keys=["group"]), 4)
    scene.begin()


def test_metadata_of_members_that_left_without_a_word(start_scene: Callable[..., Scene]) -> None:
    """Ten JoinGroups of 90 MB once stayed in memory for the session timeout; their clients were gone."""
    scene = start_scene()
    find_coordinator(scene)
    join = JoinGroupRequest("group", 300_000, 300_000, protocol_type="consumer")
    join.protocols = [JoinGroupRequestProtocol("range", bytes(METADATA_BYTES))]
    with ExitStack() as cleanup:
        members = [cleanup.enter_context(scene.connect()) for _ in range(JOINS)]
        for member in members:
            member.send(join, JOIN_VERSION)
        last = members[-1].receive()[1]
        assert last.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    scene.check(80 * MEGABYTE)


def test_partitions_of_fetch_sessions(start_scene: Callable[..., Scene]) -> None:
    scene = start_scene()
    topic_id = bytes(range(16))
    fetch = FetchRequest(session_epoch=0, max_wait_ms=0, max_bytes=1000)
    fetch.topics = [FetchTopic(topic_id=topic_id, partitions=[FetchPartition(i) for i in range(SESSION_PARTITIONS)])]
    session_ids = []
    for _ in range(SESSIONS):
        with scene.connect() as connection:
            session_ids.append(connection.call(fetch, 13).session_id)
    assert all(session_ids[:10])
    assert not any(session_ids[11:]), "the others fetch without a session"
    scene.check(120 * MEGABYTE)


def test_unread_responses_to_fetches_are_not_in_memory(start_scene: Callable[..., Scene]) -> None:
    scene = start_scene()
    with scene.connect() as connection:
        connection.create_topic("large")
        batch = bytes(values_batch(bytes(900_000)))
        for _ in range(30):
            assert connection.produce("large", batch, acks=1).error_code == 0
    scene.begin()
    with ExitStack() as cleanup:
        for _ in range(READERS):
            reader = cleanup.enter_context(scene.connect())
            reader.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            for _ in range(20):
                reader.send(large_fetch(), 12)
        with scene.connect() as connection:
            connection.topic_metadata(POLITE_TOPIC)
        scene.check(250 * MEGABYTE)


def large_fetch() -> FetchRequest:
    fetch = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=READ_BYTES, session_epoch=-1)
    fetch.topics = [FetchTopic("large", partitions=[FetchPartition(0, fetch_offset=0, partition_max_bytes=READ_BYTES)])]
    return fetch


def test_unread_answers_to_adr_consumes(start_scene: Callable[..., Scene], monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred of them once took a gigabyte. Eight are read from the log at the same time; the others wait."""
    monkeypatch.setattr(adr_connection, "TIMEOUT_S", ADR_PATIENCE_S)
    scene = start_scene({"adr.listener": "127.0.0.1:0"})
    address = adr_address(scene.broker)
    with scene.connect() as connection:
        connection.create_topic("large")
        batch = bytes(values_batch(bytes(900_000)))
        for _ in range(12):
            assert connection.produce("large", batch, acks=1).error_code == 0
    scene.begin()
    with ExitStack() as cleanup:
        for _ in range(ADR_READERS):
            reader = cleanup.enter_context(AdrConnection(address))
            reader.send(encode_request(Consume("large", 0, 0, 1000)))
        with AdrConnection(address) as other:
            assert isinstance(other.ask(Consume("large", 0, 0, 1)), Consumed), "a client that reads gets its answer"
        scene.check(250 * MEGABYTE)


def test_sessions_of_strangers_that_claim_to_be_brokers(start_scene: Callable[..., Scene]) -> None:
    """Sessions of followers had no bound on their partitions: they may have 20 million."""
    scene = start_scene()
    fetch = FetchRequest(session_epoch=0, max_wait_ms=0, max_bytes=1000, replica_state=ReplicaState(7, 1))
    fetch.topics = [
        FetchTopic(topic_id=bytes(range(16)), partitions=[FetchPartition(i) for i in range(SESSION_PARTITIONS)])
    ]
    with scene.connect() as connection:
        session_ids = [connection.call(fetch, 17).session_id for _ in range(FOLLOWER_SESSIONS)]
    assert all(session_ids[:10])
    assert not any(session_ids[11:]), "the others fetch without a session"
    scene.check(150 * MEGABYTE)
