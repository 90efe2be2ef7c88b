"""The uniform assignment of members whose subscriptions differ.

    keep         each member keeps what it had, up to an even share
    rest         partitions without a member go to the member with the fewest, topics with few subscribers first
    even out     partitions move from members with many to members with few that subscribe to them

It works in steps (model/computation.py), partition by partition: 2 to 4 µs for each.
"""

from collections.abc import Mapping
from heapq import heapreplace

from sskafka.groups.partition_set import Partition, PartitionSet, sorted_parts
from sskafka.groups.subscribers import STEP_ITEMS, Assignment, Subscriber
from sskafka.model.computation import Computation
from sskafka.model.ids import Uuid


class UnevenAssignment:
    """`ordered`: the members; a rank is the position of one. `readers`: the ranks of each topic's subscribers."""

    def __init__(
        self, ordered: list[Subscriber], readers: Mapping[Uuid, list[int]], partition_counts: Mapping[Uuid, int]
    ) -> None:
        self._ordered = ordered
        self._readers = readers
        self._counts = {topic_id: count for topic_id, count in partition_counts.items() if topic_id in readers}
        self._assigned: list[set[Partition]] = [set() for _ in ordered]
        self._loads = [0] * len(ordered)
        self._owners: dict[Partition, int] = {}
        self._done = 0
        """What was done in the current step, about one for each partition."""

    def steps(self) -> Computation[Assignment]:
        yield
        if self._ordered:
            yield from self._keep_fair_share()
            topics = yield from self._fewest_readers_first()
            yield from self._assign_rest(topics)
            yield from self._even_out(topics)
        made: Assignment = {}
        for subscriber, partitions in zip(self._ordered, self._assigned, strict=True):
            made[subscriber.member_id] = PartitionSet.of(partitions)
            yield from self._maybe_pause(len(partitions) + 1)
        return made

    def _maybe_pause(self, done: int) -> Computation[None]:
        self._done += done
        if self._done > STEP_ITEMS:
            self._done = 0
            yield

    def _fewest_readers_first(self) -> Computation[list[Uuid]]:
        """Return topics with few subscribers first, because partitions of other topics have more candidates."""
        by_size: dict[int, list[Uuid]] = {}
        for topic_id in self._counts:
            by_size.setdefault(len(self._readers[topic_id]), []).append(topic_id)
        yield
        ordered: list[Uuid] = []
        for size in sorted(by_size):
            for part in sorted_parts(by_size[size], lambda topic_id: topic_id[:1]):
                ordered += part
                yield from self._maybe_pause(len(part) if part else STEP_ITEMS)
        return ordered

    # -- keep

    def _keep_fair_share(self) -> Computation[None]:
        """Let members keep up to an even share. If there is a remainder, the first members may keep one more."""
        share, more = divmod(sum(self._counts.values()), len(self._ordered))
        ranks = sorted(range(len(self._ordered)), key=lambda rank: -len(self._ordered[rank].assigned))
        for rank in ranks:
            kept = yield from self._may_keep(self._ordered[rank], share + (more > 0))
            if len(kept) > share:
                more -= 1
            self._assigned[rank].update(kept)
            self._loads[rank] = len(kept)
            self._owners.update(dict.fromkeys(kept, rank))

    def _may_keep(self, subscriber: Subscriber, count_max: int) -> Computation[list[Partition]]:
        """Return the first partitions of the member that exist, that it subscribes to, and that nobody else keeps."""
        counts, owners, wanted = self._counts, self._owners, subscriber.topics
        kept: list[Partition] = []
        for topic_id, indexes in subscriber.assigned.by_topic():
            if len(kept) >= count_max:
                break
            if topic_id in wanted:
                count = counts.get(topic_id, 0)
                kept += [item for index in indexes if index < count and (item := (topic_id, index)) not in owners]
            yield from self._maybe_pause(len(indexes) + 1)
        del kept[count_max:]
        return kept

    # -- rest

    def _assign_rest(self, topics: list[Uuid]) -> Computation[None]:
        """Assign the remaining partitions to the members with the fewest, by a heap for each set of subscribers."""
        heaps: dict[int, list[tuple[int, int]]] = {}
        for topic_id in topics:
            readers = self._readers[topic_id]
            heap = heaps.get(id(readers))
            if heap is None:
                heap = heaps[id(readers)] = sorted((self._loads[rank], rank) for rank in readers)
                yield from self._maybe_pause(len(heap))
            for start in range(0, self._counts[topic_id], STEP_ITEMS):
                stop = min(self._counts[topic_id], start + STEP_ITEMS)
                self._assign_to_lightest(topic_id, start, stop, heap)
                yield from self._maybe_pause(stop - start)

    def _assign_to_lightest(self, topic_id: Uuid, start: int, stop: int, heap: list[tuple[int, int]]) -> None:
        """Give each partition that nobody has to the member with the lowest load.

        Loads only grow here, so those in the heap may be too low only, if another heap has the member, too. Flat,
        because this runs for every partition."""
        owners, assigned, loads = self._owners, self._assigned, self._loads
        for index in range(start, stop):
            item = (topic_id, index)
            if item in owners:
                continue
            noted, rank = heap[0]
            while noted != (load := loads[rank]):
                heapreplace(heap, (load, rank))
                noted, rank = heap[0]
            owners[item] = rank
            assigned[rank].add(item)
            loads[rank] = noted + 1
            heapreplace(heap, (noted + 1, rank))

    # -- even out

    def _even_out(self, topics: list[Uuid]) -> Computation[None]:
        """Move partitions while that evens out the shares, which may be uneven if subscriptions differ."""
        is_moved = True
        while is_moved and max(self._loads) - min(self._loads) > 1:
            is_moved = False
            for topic_id in topics:
                if (yield from self._even_out_topic(topic_id)):
                    is_moved = True

    def _even_out_topic(self, topic_id: Uuid) -> Computation[bool]:
        loads, owners, readers = self._loads, self._owners, self._readers[topic_id]
        items: dict[int, list[Partition]] = {}
        for index in range(self._counts[topic_id]):
            items.setdefault(owners[topic_id, index], []).append((topic_id, index))
        yield from self._maybe_pause(self._counts[topic_id] + 1)
        is_moved = False
        while items:
            lightest = min(readers, key=loads.__getitem__)
            heaviest = max(items, key=loads.__getitem__)
            yield from self._maybe_pause((len(readers) + len(items)) // 16)
            if loads[heaviest] - loads[lightest] < 2:
                break
            item = items[heaviest].pop()
            if not items[heaviest]:
                del items[heaviest]
            items.setdefault(lightest, []).append(item)
            self._move(item, heaviest, lightest)
            is_moved = True
        return is_moved

    def _move(self, item: Partition, before: int, after: int) -> None:
        self._assigned[before].discard(item)
        self._assigned[after].add(item)
        self._owners[item] = after
        self._loads[before] -= 1
        self._loads[after] += 1
