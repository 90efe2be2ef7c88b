"""The coordinator's assignors, which assign partitions to the members of a consumer group.

    range      each subscriber, in the order of names, gets a contiguous range of each topic's partitions. Topics with
               the same number of partitions and the same subscribers are assigned alike, so that they can be joined
    uniform    all members get the same number of partitions, give or take one, and keep what they have if possible

Both depend only on the subscriptions and the previous assignment, so all coordinators compute the same assignment.
They work in steps (model/computation.py), because a group may have thousands of topics, partitions and members.
"""

from collections.abc import Callable, Mapping

from sskafka.groups.dealing import Dealer
from sskafka.groups.partition_set import BLOCK, NOTHING, Block, MutablePartitionSet, PartitionSet
from sskafka.groups.subscribers import (
    STEP_ITEMS,
    Assignment,
    Subscriber,
    by_subscription,
    in_order,
    readers_of_topics,
)
from sskafka.groups.uneven_assignment import UnevenAssignment
from sskafka.model.computation import Computation, finished
from sskafka.model.ids import Uuid

Partitions = PartitionSet
__all__ = ["ASSIGNORS", "NOTHING", "Assignment", "Partitions", "Subscriber", "assign_range", "assign_uniform"]

Assignor = Callable[[list[Subscriber], Mapping[Uuid, int]], Computation[Assignment]]


def assign_range(subscribers: list[Subscriber], partition_counts: Mapping[Uuid, int]) -> Assignment:
    return finished(range_steps(subscribers, partition_counts))


def assign_uniform(subscribers: list[Subscriber], partition_counts: Mapping[Uuid, int]) -> Assignment:
    return finished(uniform_steps(subscribers, partition_counts))


# -- range


def range_steps(subscribers: list[Subscriber], partition_counts: Mapping[Uuid, int]) -> Computation[Assignment]:
    ordered = in_order(subscribers)
    made: list[dict[Block, int]] = [{} for _ in ordered]
    readers = yield from readers_of_topics(by_subscription(ordered))
    masks: dict[tuple[int, int], list[tuple[int, int]]] = {}
    done = 0
    for topic_id, count in partition_counts.items():
        ranks = readers.get(topic_id)
        if not ranks:
            continue
        if count > BLOCK:
            for rank, start, stop in _ranges(count, ranks):
                MutablePartitionSet(made[rank]).add_range(topic_id, start, stop)
        else:
            alike = masks.get((count, id(ranks)))
            if alike is None:
                alike = masks[count, id(ranks)] = [
                    (rank, (1 << stop) - (1 << start)) for rank, start, stop in _ranges(count, ranks)
                ]
            key = (topic_id, 0)
            for rank, mask in alike:
                made[rank][key] = mask
        done += min(count, len(ranks)) + 1
        if done > STEP_ITEMS:
            done = 0
            yield
    return {subscriber.member_id: PartitionSet(blocks) for subscriber, blocks in zip(ordered, made, strict=True)}


def _ranges(count: int, ranks: list[int]) -> list[tuple[int, int, int]]:
    """Return the ranges of a topic's partitions: the rank of a member, its first index, and the one after its last."""
    share, more = divmod(count, len(ranks))
    found, start = [], 0
    for number, rank in enumerate(ranks[:count]):
        stop = start + share + (number < more)
        found.append((rank, start, stop))
        start = stop
    return found


# -- uniform


def uniform_steps(subscribers: list[Subscriber], partition_counts: Mapping[Uuid, int]) -> Computation[Assignment]:
    ordered = in_order(subscribers)
    alike = by_subscription(ordered)
    if len(alike) == 1:
        return (yield from _assign_to_equals(ordered, partition_counts))
    readers = yield from readers_of_topics(alike)
    return (yield from UnevenAssignment(ordered, readers, partition_counts).steps())


def _assign_to_equals(ordered: list[Subscriber], partition_counts: Mapping[Uuid, int]) -> Computation[Assignment]:
    """Assign to members that all have the same subscription, in operations on sets. The result is that of
    `UnevenAssignment`."""
    topics = ordered[0].topics
    counts = {topic: count for topic, count in partition_counts.items() if topic in topics}
    yield
    free = MutablePartitionSet.of_counts(counts)
    share, more = divmod(sum(counts.values()), len(ordered))
    yield
    kept: dict[str, PartitionSet] = {}
    done = 0
    for subscriber in sorted(ordered, key=lambda subscriber: -len(subscriber.assigned)):
        owned = free.common(subscriber.assigned)
        if subscriber.assigned.block_count > STEP_ITEMS:
            yield
        size = len(owned)
        if size > share:
            room = share + (more > 0)
            more -= more > 0
            owned = owned if size == room else (yield from owned.first_in_steps(room))
        kept[subscriber.member_id] = owned
        free.remove(owned)
        done += 2 * subscriber.assigned.block_count + 1
        if done > STEP_ITEMS:
            done = 0
            yield
    dealer = Dealer([len(kept[subscriber.member_id]) for subscriber in ordered])
    dealt = yield from dealer.steps(PartitionSet(free.release()))
    made: Assignment = {}
    for subscriber, more_of in zip(ordered, dealt, strict=True):
        both = made[subscriber.member_id] = kept[subscriber.member_id] | more_of
        done += both.block_count
        if done > STEP_ITEMS:
            done = 0
            yield
    return made


ASSIGNORS: dict[str, Assignor] = {"uniform": uniform_steps, "range": range_steps}
