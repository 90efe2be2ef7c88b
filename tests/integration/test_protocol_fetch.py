"""Fetch on the wire: offsets, sizes, waiting, incremental sessions, topic ids."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from wire_connection import Connection, fetch_request, records_in, values_batch, values_in

from sskafka.model.errors import ErrorCode
from sskafka.records.batch import read_header
from sskafka.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from sskafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from sskafka.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from sskafka.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

MAX_BYTES = 1 << 20


@pytest.fixture
def second(bootstrap: str) -> Iterator[Connection]:
    with Connection(bootstrap) as connection:
        yield connection


@pytest.fixture
def three_batches(connection: Connection, topic: str) -> str:
    """A topic with batches at the offsets 0-2, 3-5 and 6-8."""
    connection.create_topic(topic)
    for n in (0, 3, 6):
        connection.produce(topic, values_batch(*(b"%d" % m for m in range(n, n + 3))))
    return topic


# ------------------------------------------------------------------------------------------------ offsets and sizes


@pytest.mark.parametrize(("offset", "first"), [(0, 0), (2, 0), (3, 3), (4, 3), (8, 6)])
def test_an_offset_inside_a_batch_gets_the_whole_batch(
    connection: Connection, three_batches: str, offset: int, first: int
) -> None:
    assert [r.offset for r in records_in(connection.fetch(three_batches, offset))] == list(range(first, 9))


def test_offsets_at_and_beyond_the_ends(connection: Connection, three_batches: str) -> None:
    at_end = connection.fetch(three_batches, 9)
    assert (at_end.error_code, at_end.high_watermark, at_end.log_start_offset) == (0, 9, 0)
    assert at_end.last_stable_offset == 9
    assert values_in(at_end) == []
    for offset in (10, 1 << 40, -1):
        assert connection.fetch(three_batches, offset).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_first_batch_comes_whole_whatever_the_limits(connection: Connection, three_batches: str) -> None:
    for limits in ({"partition_max_bytes": 1}, {"max_bytes": 1}, {"partition_max_bytes": 1, "max_bytes": 1}):
        assert [r.offset for r in records_in(connection.fetch(three_batches, 3, **limits))][:3] == [3, 4, 5]
    assert len(records_in(connection.fetch(three_batches, 3, partition_max_bytes=1))) == 3


def test_only_one_partition_may_exceed_the_limits(connection: Connection, topic: str) -> None:
    connection.create_topic(topic, 3)
    for partition in range(3):
        connection.produce(topic, values_batch(bytes(5000)), partition)
    wanted = [FetchPartition(p, fetch_offset=0, partition_max_bytes=100) for p in range(3)]
    request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=100, topics=[FetchTopic(topic, partitions=wanted)])
    partitions = connection.call(request, version=12).responses[0].partitions
    assert [p.error_code for p in partitions] == [0, 0, 0]
    assert [len(values_in(p)) for p in partitions] == [1, 0, 0]


def test_partitions_that_do_not_exist_come_last(connection: Connection, three_batches: str) -> None:
    topics = [
        FetchTopic("none", partitions=[FetchPartition(0)]),
        FetchTopic(three_batches, partitions=[FetchPartition(7), FetchPartition(0, partition_max_bytes=MAX_BYTES)]),
    ]
    response = connection.call(FetchRequest(max_wait_ms=0, max_bytes=MAX_BYTES, topics=topics), version=12)
    told = [(topic.topic, [part.partition_index for part in topic.partitions]) for topic in response.responses]
    assert told == [(three_batches, [0]), ("none", [0]), (three_batches, [7])]


@pytest.mark.parametrize("version", range(4, 13))
def test_every_version_with_names(connection: Connection, three_batches: str, version: int) -> None:
    response = connection.call(fetch_request(three_batches, 0, isolation_level=1), version)
    data = response.responses[0].partitions[0]
    assert len(values_in(data)) == 9
    assert (data.high_watermark, data.last_stable_offset) == (9, 9)


def test_unknown_topics_and_partitions(connection: Connection, topic: str) -> None:
    connection.create_topic(topic)
    for name, partition in (("no-such-topic", 0), (topic, 1), (topic, -1)):
        assert connection.fetch(name, partition=partition).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_leader_epochs_are_checked(connection: Connection, three_batches: str) -> None:
    request = fetch_request(three_batches)
    request.topics[0].partitions[0].current_leader_epoch = 9
    data = connection.call(request, version=12).responses[0].partitions[0]
    assert data.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


@pytest.mark.parametrize(("epoch", "end"), [(0, (0, 9)), (7, (-1, -1)), (-1, (-1, -1)), (-5, (-5, 0))])
def test_ends_of_leader_epochs(connection: Connection, three_batches: str, epoch: int, end: tuple[int, int]) -> None:
    asked = OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(replica_id=-1, topics=[OffsetForLeaderTopic(three_batches, [asked])])
    found = connection.call(request, version=4).topics[0].partitions[0]
    assert (found.error_code, found.leader_epoch, found.end_offset) == (0, *end)


@pytest.mark.parametrize("version", range(1, 12))
def test_list_offsets(connection: Connection, three_batches: str, version: int) -> None:
    for timestamp, offset in ((-2, 0), (-1, 9), (1_600_000_000_000, 0), (1_800_000_000_000, -1)):
        wanted = ListOffsetsPartition(0, timestamp=timestamp)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(three_batches, [wanted])])
        found = connection.call(request, version).topics[0].partitions[0]
        assert (found.error_code, found.offset) == (0, offset), timestamp


# --------------------------------------------------------------------------------------------------------- waiting


def test_waits_for_its_time_when_nothing_comes(connection: Connection, three_batches: str) -> None:
    began = time.monotonic()
    assert values_in(connection.fetch(three_batches, 9, max_wait_ms=400)) == []
    assert 0.35 < time.monotonic() - began < 5


def test_answers_at_once_when_there_is_enough(connection: Connection, three_batches: str) -> None:
    began = time.monotonic()
    assert len(values_in(connection.fetch(three_batches, 0, max_wait_ms=20_000, min_bytes=100))) == 9
    assert values_in(connection.fetch(three_batches, 9, max_wait_ms=20_000, min_bytes=0)) == []
    assert time.monotonic() - began < 10


def test_waits_until_enough_bytes_are_there(connection: Connection, second: Connection, topic: str) -> None:
    connection.create_topic(topic)
    connection.send(fetch_request(topic, 0, max_wait_ms=30_000, min_bytes=3000), version=12)
    for _ in range(3):
        second.produce(topic, values_batch(bytes(1000)))
    _, response = connection.receive()
    assert len(values_in(response.responses[0].partitions[0])) == 3


def test_deleting_the_topic_ends_the_wait(connection: Connection, second: Connection, topic: str) -> None:
    connection.create_topic(topic)
    began = time.monotonic()
    connection.send(fetch_request(topic, 0, max_wait_ms=60_000), version=12)
    second.call(DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=5000), version=6)
    _, response = connection.receive()
    assert response.responses[0].partitions[0].error_code in (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    )
    assert time.monotonic() - began < 10


# -------------------------------------------------------------------------------------------------------- sessions


class Session:
    """An incremental fetch session over partitions of one topic, by name (version 12)."""

    def __init__(self, connection: Connection, topic: str) -> None:
        self.connection = connection
        self.topic = topic
        self.id = 0
        self.epoch = 0

    def fetch(self, offsets: dict[int, int] | None = None, forget: tuple[int, ...] = ()) -> Any:
        partitions = [
            FetchPartition(p, fetch_offset=o, partition_max_bytes=MAX_BYTES) for p, o in (offsets or {}).items()
        ]
        request = FetchRequest(
            min_bytes=0,
            max_bytes=MAX_BYTES,
            session_id=self.id,
            session_epoch=self.epoch,
            topics=[FetchTopic(self.topic, partitions=partitions)] if partitions else [],
            forgotten_topics_data=[ForgottenTopic(self.topic, partitions=list(forget))] if forget else [],
        )
        response = self.connection.call(request, version=12)
        self.epoch += 1
        self.id = response.session_id or self.id
        return response

    def values(self, *args: Any, **kwargs: Any) -> dict[int, list[bytes | None]]:
        """What the next fetch of the session brings, by partition; partitions without news are absent."""
        response = self.fetch(*args, **kwargs)
        assert response.error_code == 0
        return {p.partition_index: list(values_in(p)) for topic in response.responses for p in topic.partitions}


@pytest.fixture
def session(connection: Connection, topic: str) -> Session:
    connection.create_topic(topic, 3)
    session = Session(connection, topic)
    assert session.values({0: 0, 1: 0, 2: 0}) == {0: [], 1: [], 2: []}
    assert session.id > 0
    return session


def test_sessions_bring_only_news(connection: Connection, session: Session) -> None:
    assert session.values() == {}
    connection.produce(session.topic, values_batch(b"one"), partition=1)
    assert session.values() == {1: [b"one"]}
    assert session.values({1: 1}) == {}
    connection.produce(session.topic, values_batch(b"two"), partition=2)
    connection.produce(session.topic, values_batch(b"more"), partition=1)
    assert session.values() == {1: [b"more"], 2: [b"two"]}


def test_forgotten_partitions_are_left_out(connection: Connection, session: Session) -> None:
    for partition in range(3):
        connection.produce(session.topic, values_batch(b"value"), partition)
    assert session.values(forget=(0, 2)) == {1: [b"value"]}
    assert session.values({2: 0}) == {1: [b"value"], 2: [b"value"]}


def test_a_session_without_partitions_is_closed(session: Session) -> None:
    response = session.fetch(forget=(0, 1, 2))
    assert (response.error_code, response.session_id, response.responses) == (ErrorCode.NONE, 0, [])
    assert session.fetch({0: 0}).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_wrong_epochs_and_unknown_sessions(session: Session) -> None:
    right = session.epoch
    session.epoch = right + 5
    assert session.fetch().error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    session.epoch = right
    assert session.values() == {}
    session.id += 1_000_003
    session.epoch = 1
    assert session.fetch().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_requests_refused_as_a_whole_open_no_session(connection: Connection, topic: str) -> None:
    connection.create_topic(topic)
    wanted = [FetchTopic(topic, partitions=[FetchPartition(0)])]
    odd = FetchRequest(session_id=7, session_epoch=0, isolation_level=5, max_wait_ms=0, topics=wanted)
    refused = connection.call(odd, version=12)
    assert (refused.error_code, refused.session_id) == (ErrorCode.INVALID_REQUEST, 7)  # that of the request


def test_the_zero_topic_id_opens_a_session_for_one_partition_alone(connection: Connection) -> None:
    def fetch(*partitions: int) -> Any:
        wanted = [FetchTopic(topic_id=bytes(16), partitions=[FetchPartition(number) for number in partitions])]
        return connection.call(FetchRequest(session_epoch=0, max_wait_ms=0, topics=wanted), version=14)

    one = fetch(0)
    assert one.session_id > 0
    assert one.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    two = fetch(0, 1)
    assert (two.error_code, two.session_id, two.responses) == (ErrorCode.INVALID_REQUEST, 0, [])


def test_closed_sessions_are_gone(session: Session) -> None:
    number = session.id
    session.epoch = -1
    assert session.fetch({0: 0}).error_code == 0
    session.id, session.epoch = number, 1
    assert session.fetch().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_errors_in_a_session_are_told_until_they_end(connection: Connection, session: Session) -> None:
    for _ in range(2):
        (topic,) = session.fetch({0: 99}).responses
        assert [(p.partition_index, p.error_code) for p in topic.partitions] == [(0, ErrorCode.OFFSET_OUT_OF_RANGE)]
    assert session.values({0: 0}) in ({}, {0: []})
    connection.produce(session.topic, values_batch(b"value"))
    assert session.values() == {0: [b"value"]}


# ------------------------------------------------------------------------------------------------------- topic ids


@pytest.mark.parametrize("version", range(13, 19))
def test_topics_by_id(connection: Connection, new_topic: Callable[[str], str], version: int) -> None:
    name = new_topic("by-id")
    topic_id = connection.create_topic(name)
    connection.produce(name, values_batch(b"value"))
    wanted = [FetchPartition(0, partition_max_bytes=MAX_BYTES)]
    topics = [FetchTopic(topic_id=t, partitions=wanted) for t in (topic_id, bytes(range(16)))]
    response = connection.call(FetchRequest(min_bytes=1, topics=topics), version)
    known, unknown = response.responses
    assert (known.topic_id, values_in(known.partitions[0])) == (topic_id, [b"value"])
    assert unknown.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_the_id_of_a_deleted_topic_is_unknown(connection: Connection, topic: str) -> None:
    old = connection.create_topic(topic)
    deletion = DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=old, name=None)], timeout_ms=5000)
    assert connection.call(deletion, version=6).responses[0].error_code == 0
    new = connection.create_topic(topic)
    assert old != new
    wanted = [FetchTopic(topic_id=old, partitions=[FetchPartition(0, partition_max_bytes=MAX_BYTES)])]
    data = connection.call(FetchRequest(topics=wanted), version=16).responses[0].partitions[0]
    assert data.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_batches_carry_the_leader_epoch(connection: Connection, three_batches: str) -> None:
    records = connection.fetch(three_batches).records
    assert records is not None
    assert read_header(records).leader_epoch == 0
