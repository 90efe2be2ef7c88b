"""Lives of committed offsets while groups and topics are deleted in the background, a few offsets in each decision.

Offsets are committed, in transactions and outside of them; groups and topics are deleted and come back under the same
names; other brokers take over, sometimes without the last records. After every step, what can be fetched is what it
would be if each deletion happened at once. After a takeover, offsets of deleted groups may be there again, if their
deletion was not answered. A failing seed is named and replays exactly.
"""

from collections.abc import Callable
from functools import partial
from random import Random

import pytest
from group_lab import Asked, GroupLab

from sskafka.groups import offset_deletion
from sskafka.groups.group import OffsetCommitter
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ProducerIdAndEpoch, TopicPartition

GROUPS, TOPICS, PARTITIONS = ("g1", "g2", "g3"), ("a", "b"), 4
PRODUCERS = [ProducerIdAndEpoch(number, 0) for number in (1, 2)]
STEPS = 80

Place = tuple[str, TopicPartition]


class OffsetLife:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.lab = GroupLab()
        self.offset = 0
        self.expected: dict[Place, int] = {}
        """What can be fetched, if deletions happen at once."""
        self.pending: dict[ProducerIdAndEpoch, dict[Place, tuple[int, int]]] = {each: {} for each in PRODUCERS}
        """What transactions have written: the offset, and when."""
        self.written_at: dict[Place, int] = {}
        self.deletions: list[tuple[Asked, set[int]]] = []
        """Requests to delete groups, and the offsets that they delete. No offset is committed twice."""
        self.deleted = 0

    def run(self) -> None:
        for _ in range(STEPS):
            self.step()
            self.check()
        self.come_to_rest()

    def step(self) -> None:
        often = [self.commit] * 6 + [self.commit_in_transaction] * 2 + [self.delete_some] * 6
        seldom = [self.end_transaction, self.delete_group, self.delete_group, self.delete_topic, self.fail_over]
        self.random.choice([*often, *seldom])()

    # -- offsets

    def commit(self, producer: ProducerIdAndEpoch | None = None) -> None:
        group_id, topic = self.random.choice(GROUPS), self.random.choice(TOPICS)
        for partition in self.random.sample(range(PARTITIONS), self.random.randint(1, PARTITIONS)):
            self.offset += 1
            place = group_id, TopicPartition(topic, partition)
            code = self.lab.commit(
                self.offset, OffsetCommitter(), partition=partition, producer=producer, topic=topic, group_id=group_id
            )
            assert code is ErrorCode.NONE
            if producer is None:
                self.expected[place], self.written_at[place] = self.offset, self.offset
            else:
                self.pending[producer][place] = self.offset, self.offset

    def commit_in_transaction(self) -> None:
        self.commit(self.random.choice(PRODUCERS))

    def end_transaction(self) -> None:
        producer = self.random.choice(PRODUCERS)
        is_committed = self.random.random() < 0.7
        self.lab.end_transaction(producer, is_committed)
        pending, self.pending[producer] = self.pending[producer], {}
        for place, (offset, written_at) in pending.items() if is_committed else ():
            if self.written_at.get(place, 0) < written_at:
                self.expected[place], self.written_at[place] = offset, written_at

    # -- deletions

    def delete_group(self) -> None:
        group_id = self.random.choice(GROUPS)
        is_there = group_id in self.lab.shard.groups
        asked = self.lab.ask(lambda completion: self.lab.shard.delete_group(group_id, completion))
        if not is_there:
            assert asked.error is ErrorCode.GROUP_ID_NOT_FOUND
            return
        self.deleted += 1
        self.deletions.append((asked, self.forget(lambda place: place[0] == group_id)))

    def delete_topic(self) -> None:
        """The topic is created again at once. Every coordinator deletes the offsets of topics that do not exist."""
        topic = self.random.choice(TOPICS)
        self.lab.take(self.lab.shard.topics_deleted([topic]))
        self.forget(lambda place: place[1].topic == topic)

    def forget(self, is_deleted: Callable[[Place], bool]) -> set[int]:
        """Return the offsets that are deleted."""
        forgotten = {self.expected.pop(place) for place in list(self.expected) if is_deleted(place)}
        self.written_at = {place: at for place, at in self.written_at.items() if place in self.expected}
        for written in self.pending.values():
            forgotten |= {written.pop(place)[0] for place in list(written) if is_deleted(place)}
        return forgotten

    def delete_some(self) -> None:
        for _ in range(self.random.randint(1, 4)):
            self.lab.step_deletions()

    # -- other brokers

    def fail_over(self) -> None:
        """A topic whose deletion is under way is deleted again: it does not exist for the new coordinator."""
        topics = [deletion.topics for deletion in self.lab.shard.deletions._unfinished if deletion.topics is not None]
        self.lab.fail_over()
        for each in topics:
            self.lab.take(self.lab.shard.topics_deleted(each))
            self.forget(partial(_is_of, each))
        self.deletions = [each for each in self.deletions if each[0].error is None]
        for group_id in GROUPS:  # of deletions that were not answered
            for partition, offset in self.lab.shard.offsets.visible(group_id).items():
                self.expected.setdefault((group_id, partition), offset.offset)
                self.written_at.setdefault((group_id, partition), offset.offset)
        for producer, written in self.pending.items():
            for group_id, offsets in self.lab.shard.offsets._pending.get(producer.producer_id, {}).items():
                for partition, offset in offsets.items():
                    if self.lab.shard.offsets._is_hidden(group_id, partition.topic, offset):
                        continue
                    written.setdefault((group_id, partition), (offset.offset, offset.offset))

    # -- invariants

    def check(self) -> None:
        found = {
            (group_id, partition): offset.offset
            for group_id in GROUPS
            for partition, offset in self.lab.shard.offset_requests.fetch_all(group_id, False).offsets.items()
        }
        assert found == self.expected, "offsets that can be fetched"
        for place, offset in self.expected.items():
            one = self.lab.fetched_at(*place)
            assert one is not None, "an offset cannot be fetched"
            assert one.offset == offset, "another offset is fetched"
        assert {group_id for group_id, _ in self.expected} <= set(self.lab.shard.groups), "offsets without a group"
        loaded = self.loaded()
        for asked, deleted in self.deletions:
            if asked.response is not None:
                assert not deleted & loaded, "a deletion is answered before it is done"
        self.deletions = [each for each in self.deletions if not each[0].is_answered]

    def loaded(self) -> set[int]:
        """Return all offsets that a broker would load from the log, and that could ever be fetched."""
        store = self.lab.shard.offsets
        found = {each.offset for offsets in store._committed.values() for each in offsets.values()}
        for groups in store._pending.values():
            for group_id, offsets in groups.items():
                for partition, offset in offsets.items():
                    committed = store.committed(group_id).get(partition)
                    if committed is None or committed.order < offset.order:
                        found.add(offset.offset)
        return found

    def come_to_rest(self) -> None:
        for producer in PRODUCERS:
            self.lab.end_transaction(producer, False)
            self.pending[producer] = {}
        for _ in range(3):
            self.lab.finish_deletions()
            self.lab.time.run_for(2 * offset_deletion.ASK_AGAIN_MS)
        self.check()
        assert not self.lab.shard.deletions._unfinished, "deletions are not finished"
        assert not self.deletions, "a requester waits"
        assert self.loaded() == set(self.expected.values()), "offsets are left in the log"
        self.lab.fail_over()
        self.check()


def _is_of(topics: frozenset[str], place: Place) -> bool:
    return place[1].topic in topics


def run_seed(seed: int) -> OffsetLife:
    """Run a life in which every deletion is done in the background, one or two offsets in each decision."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(offset_deletion, "AT_ONCE_MAX", 0)
        patch.setattr(offset_deletion, "OFFSETS_PER_DECISION", 1 + seed % 2)
        life = OffsetLife(seed)
        try:
            life.run()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    return life
