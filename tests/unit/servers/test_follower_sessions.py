"""Fetch sessions of followers read only partitions that have changed. Uses brokers of the simulated cluster."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))

from replica_cluster import TOPIC_ID, ReplicaCluster

from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)

PARTITIONS = 20


class Follower:
    """Broker 2 as a script: the real one is not running."""

    def __init__(self) -> None:
        self.cluster = ReplicaCluster(brokers=2, min_insync=1)
        self.cluster.controller.create_topic([[1, 2]] * PARTITIONS)
        self.cluster.time.run_for(300)
        self.broker_epoch = self.cluster.brokers[2].broker_epoch + 1
        self.cluster.stop(2)
        self.session = (0, 0)
        self.answers: list[FetchResponse] = []

    def fetch(self, offsets: dict[int, int], forget: tuple[int, ...] = (), max_wait_ms: int = 500) -> None:
        partitions = [FetchPartition(index, 0, offset, -1, 0, 1000) for index, offset in offsets.items()]
        request = FetchRequest(
            replica_state=ReplicaState(2, self.broker_epoch),
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            session_id=self.session[0],
            session_epoch=self.session[1],
            topics=[FetchTopic(topic_id=TOPIC_ID, partitions=partitions)],
            forgotten_topics_data=[ForgottenTopic(topic_id=TOPIC_ID, partitions=list(forget))],
        )
        self.cluster.brokers[1].fetch(request, self._answered)

    def _answered(self, response: FetchResponse) -> None:
        self.session = (response.session_id, self.session[1] + 1)
        self.answers.append(response)

    def append(self, index: int) -> None:
        from sskafka.records.builder import NewRecord, build_batch

        batch = build_batch([NewRecord(None, b"v", (), 0)])
        self.cluster.partition(1, index).append(memoryview(batch), 1, 0)

    def told(self) -> dict[int, tuple[int, bool]]:
        """Of the newest answer: errors and whether there were records, by partition."""
        topics = self.answers[-1].responses
        return {
            data.partition_index: (data.error_code, bool(data.records)) for topic in topics for data in topic.partitions
        }

    def maybe_make_quiet(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """The partitions that are read from now on."""
        from sskafka.servers.kafka.handlers.fetch.readers import FollowerReader

        seen: list[int] = []
        read = FollowerReader.read

        def note(self: FollowerReader, target: object, room: int, min_one: bool) -> object:
            seen.append(target.index)  # type: ignore[attr-defined]
            return read(self, target, room, min_one)  # type: ignore[arg-type]

        monkeypatch.setattr(FollowerReader, "read", note)
        return seen


@pytest.fixture
def follower() -> Follower:
    made = Follower()
    made.fetch(dict.fromkeys(range(PARTITIONS), 0), max_wait_ms=0)
    assert len(made.told()) == PARTITIONS
    return made


def test_quiet_partitions_are_not_looked_at(follower: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = follower.maybe_make_quiet(monkeypatch)
    follower.fetch({})
    follower.append(7)
    follower.cluster.time.run_for(1)
    assert follower.told() == {7: (0, True)}
    assert set(seen) == {7}


def test_one_answer_has_all_news_of_a_turn(follower: Follower) -> None:
    follower.fetch({})
    for index in (3, 9, 5):
        follower.append(index)
    follower.cluster.time.run_for(1)
    assert set(follower.told()) == {3, 9, 5}


def test_records_that_were_not_taken_are_sent_again(follower: Follower) -> None:
    follower.append(7)
    for _ in range(2):
        follower.cluster.time.run_for(1)
        follower.fetch({}, max_wait_ms=0)
        assert follower.told() == {7: (0, True)}


def test_a_fetch_without_news_waits_its_time(follower: Follower) -> None:
    follower.fetch({})
    follower.cluster.time.run_for(400)
    assert len(follower.answers) == 1
    follower.cluster.time.run_for(200)
    assert follower.told() == {}


def test_forgotten_partitions_wake_nobody(follower: Follower) -> None:
    follower.fetch({}, forget=(7,))
    follower.append(7)
    follower.cluster.time.run_for(100)
    assert len(follower.answers) == 1
    follower.append(8)
    follower.cluster.time.run_for(100)
    assert follower.told() == {8: (0, True)}


def test_a_new_leader_epoch_ends_the_wait(follower: Follower) -> None:
    follower.fetch({})
    follower.cluster.controller.move_leader(4, 1)
    follower.cluster.time.run_for(50)
    assert follower.told() == {4: (ErrorCode.FENCED_LEADER_EPOCH, False)}


def test_a_closed_session_leaves_no_watches(follower: Follower) -> None:
    follower.session = (follower.session[0], -1)
    follower.fetch({}, max_wait_ms=0)
    waiters = [follower.cluster.partition(1, index).follower_waiters for index in range(PARTITIONS)]
    assert not any(waiters)


def test_time_passes_for_all_partitions_of_a_fetch(follower: Follower) -> None:
    """A fetch that names nothing still says that the follower is there."""
    for _ in range(20):
        follower.cluster.time.run_for(400)
        follower.fetch({}, max_wait_ms=0)
    leader = follower.cluster.partition(1, 7).leader
    assert leader is not None
    assert leader.followers[2].last_caught_up_ms == follower.cluster.time.elapsed_ms


def test_fetches_of_other_partitions_do_not_count_for_a_forgotten_one(follower: Follower) -> None:
    """A follower whose disk is full pauses the partition and goes on with the others."""
    follower.append(7)
    follower.fetch({}, forget=(7,), max_wait_ms=0)
    for _ in range(8):
        follower.cluster.time.run_for(400)
        follower.fetch({}, max_wait_ms=0)
    assert follower.cluster.controller.state(7).isr == (1,)
    assert follower.cluster.controller.state(8).isr == (1, 2)


def test_another_session_does_not_end_the_progress_of_the_current_one(follower: Follower) -> None:
    """A partition may move between the fetchers of a broker, and the earlier session forgets it last."""
    earlier = follower.session
    follower.session = (0, 0)
    follower.fetch({7: 0}, max_wait_ms=0)
    current, follower.session = follower.session, earlier
    follower.fetch({}, forget=(7,), max_wait_ms=0)
    follower.session = current
    follower.cluster.time.run_for(400)
    follower.fetch({}, max_wait_ms=0)
    leader = follower.cluster.partition(1, 7).leader
    assert leader is not None
    assert leader.followers[2].last_caught_up_ms == follower.cluster.time.elapsed_ms
