"""Sets of partitions as bit masks, so that groups with thousands of partitions are assigned in milliseconds.

    (topic id, block) -> mask        bit n of the mask: partition block * BLOCK + n is in the set

An operation on two sets is one operation on integers for each block of a topic, instead of one look-up for each
partition. Blocks bound the memory of a set by the number of its partitions, whatever their indexes are: clients and
records can name any int32.
"""

from collections.abc import Callable, Collection, ItemsView, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import compress
from typing import Any, TypeVar, cast

from sskafka.model.computation import Computation, finished
from sskafka.model.ids import Uuid

Partition = tuple[Uuid, int]
Block = tuple[Uuid, int]
K = TypeVar("K", Block, Uuid)

BLOCK_BITS = 10
BLOCK = 1 << BLOCK_BITS
SPARSE_MAX = 12
"""Up to this many bits of a mask are found one by one."""
SORTED_AT_ONCE = 2_000
STEP_ITEMS = 4_000

_LOW = BLOCK - 1
_BITS = [1 << number for number in range(BLOCK)]
_LOWEST = [(1 << count) - 1 for count in range(BLOCK + 1)]
_IS_SET = bytes.maketrans(b"01", b"\0\1")


class PartitionSet(AbstractSet[Partition]):
    """An immutable set of (topic id, index). Iteration is in the order of topic ids and indexes.

    Operations whose result is one of the two sets return that set itself, where this is cheap to know."""

    __slots__ = ("_blocks", "_within", "encoded")

    def __init__(self, blocks: dict[Block, int]) -> None:
        """Take over masks, none of which is 0."""
        self._blocks = blocks
        self._within: AbstractSet[Uuid] | None = None
        self.encoded: bytes | None = None
        """The set as an array of topics, if it is long and was encoded (encoded_partitions.py)."""

    # -- making sets

    @classmethod
    def of(cls, partitions: Iterable[Partition]) -> "PartitionSet":
        if isinstance(partitions, PartitionSet):
            return partitions
        made = MutablePartitionSet()
        for topic_id, index in partitions:
            made.add(topic_id, index)
        return made.frozen()

    @classmethod
    def of_topics(cls, topics: Iterable[tuple[Uuid, Sequence[int]]]) -> "PartitionSet":
        """Return the set of topics with the indexes of their partitions."""
        return finished(of_topics_in_steps(topics))

    @classmethod
    def _from_iterable(cls, it: Iterable[Any]) -> AbstractSet[Any]:
        return cls.of(it)

    # -- the set

    def __repr__(self) -> str:
        return f"PartitionSet({sorted(self)})"

    def __contains__(self, item: object) -> bool:
        topic_id, index = cast(Partition, item)
        return bool(self._blocks.get((topic_id, index >> BLOCK_BITS), 0) >> (index & _LOW) & 1)

    def __iter__(self) -> Iterator[Partition]:
        for topic_id, indexes in self.by_topic():
            for index in indexes:
                yield topic_id, index

    def __len__(self) -> int:
        return sum(map(int.bit_count, self._blocks.values()))

    def __bool__(self) -> bool:
        return bool(self._blocks)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PartitionSet):
            return self is other or self._blocks == other._blocks
        return self._blocks == PartitionSet.of(other)._blocks if isinstance(other, AbstractSet) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __or__(self, other: AbstractSet[Any]) -> "PartitionSet":
        more = PartitionSet.of(other)._blocks
        if not more:
            return self
        if not self._blocks:
            return PartitionSet(more)
        made = self._blocks.copy()
        for key, mask in more.items():
            made[key] = made.get(key, 0) | mask
        return PartitionSet(made)

    def __and__(self, other: AbstractSet[Any]) -> "PartitionSet":
        theirs = PartitionSet.of(other)._blocks
        if not theirs:
            return NOTHING
        found = {key: both for key, mask in self._blocks.items() if (both := mask & theirs.get(key, 0))}
        return self if found == self._blocks else PartitionSet(found)

    def __sub__(self, other: AbstractSet[Any]) -> "PartitionSet":
        theirs = PartitionSet.of(other)._blocks
        if not theirs:
            return self
        return PartitionSet({key: rest for key, mask in self._blocks.items() if (rest := mask & ~theirs.get(key, 0))})

    def __le__(self, other: AbstractSet[Any]) -> bool:
        return not self - other

    def isdisjoint(self, other: Iterable[Any]) -> bool:
        theirs = PartitionSet.of(other)._blocks
        return not any(mask & theirs.get(key, 0) for key, mask in self._blocks.items())

    def changes_from(self, before: "PartitionSet") -> tuple["PartitionSet", "PartitionSet"]:
        """Return what this set has and the one before had not, and the reverse."""
        old, new = before._blocks, self._blocks
        if not old or not new:
            return self, before
        changed = {key: mask for key, mask in new.items() if old.get(key) != mask}
        gained = {key: rest for key, mask in changed.items() if (rest := mask & ~old.get(key, 0))}
        if len(old) == len(new) - len(changed):
            return PartitionSet(gained), NOTHING
        lost = {key: rest for key, mask in old.items() if (rest := mask & ~new.get(key, 0))}
        return PartitionSet(gained), PartitionSet(lost)

    # -- parts of the set

    def in_topics(self, topics: AbstractSet[Uuid]) -> "PartitionSet":
        if topics is self._within:
            return self
        found = {key: mask for key, mask in self._blocks.items() if key[0] in topics}
        if len(found) < len(self._blocks):
            return PartitionSet(found)
        self._within = topics
        return self

    def first(self, count: int) -> "PartitionSet":
        """Return the first `count` partitions, in the order of topic ids and indexes."""
        return finished(self.first_in_steps(count))

    def first_in_steps(self, count: int) -> Computation["PartitionSet"]:
        made: dict[Block, int] = {}
        for part in self.sorted_parts():
            for key, mask in part:
                size = mask.bit_count()
                if size >= count:
                    if count:
                        made[key] = sum(map(_BITS.__getitem__, numbers_of(mask)[:count]))
                    return PartitionSet(made)
                made[key] = mask
                count -= size
            if not part or len(made) % SORTED_AT_ONCE < len(part):
                yield
        return PartitionSet(made)

    def by_topic(self) -> list[tuple[Uuid, list[int]]]:
        """Return topics and the indexes of their partitions, both sorted."""
        made: list[tuple[Uuid, list[int]]] = []
        for key in sorted(self._blocks):
            topic_id, block = key
            numbers = numbers_of(self._blocks[key])
            if block:
                start = block << BLOCK_BITS
                numbers = [start + number for number in numbers]
            if made and made[-1][0] == topic_id:
                made[-1][1].extend(numbers)
            else:
                made.append((topic_id, numbers))
        return made

    def masks(self) -> ItemsView[Block, int]:
        return self._blocks.items()

    def blocks(self) -> AbstractSet[Block]:
        return self._blocks.keys()

    def sorted_parts(self) -> Iterator[list[tuple[Block, int]]]:
        """Yield the masks in parts, in the order of topic ids and indexes, and empty parts before the first."""
        blocks = self._blocks
        for part in sorted_parts(blocks, lambda key: key[0][:1]):
            yield [(key, blocks[key]) for key in part]

    def topic_ids(self) -> set[Uuid]:
        return {topic_id for topic_id, _ in self._blocks}

    def high_topics(self) -> AbstractSet[Uuid]:
        """Return the topics with indexes that are not in block 0: those with more than one block, and some others."""
        return {topic_id for topic_id, block in self._blocks if block}

    @property
    def block_count(self) -> int:
        """The number of masks, in proportion to which operations take time."""
        return len(self._blocks)

    @property
    def topic_count(self) -> int:
        blocks = self._blocks
        return len(blocks) if not self.high_topics() else len(self.topic_ids())


class MutablePartitionSet:
    """A set that is built or kept up to date. The cost of a change depends on the change, not on the set."""

    __slots__ = ("_blocks",)

    def __init__(self, blocks: dict[Block, int] | None = None) -> None:
        self._blocks: dict[Block, int] = {} if blocks is None else blocks

    @classmethod
    def of_counts(cls, counts: Mapping[Uuid, int]) -> "MutablePartitionSet":
        """Return all partitions of topics with these numbers of partitions."""
        made = cls({(topic_id, 0): _LOWEST[count] for topic_id, count in counts.items() if 0 < count <= BLOCK})
        if len(made._blocks) < len(counts):
            for topic_id, count in counts.items():
                if count > BLOCK:
                    made.add_range(topic_id, 0, count)
        return made

    def copy(self) -> "MutablePartitionSet":
        return MutablePartitionSet(self._blocks.copy())

    def __bool__(self) -> bool:
        return bool(self._blocks)

    def add(self, topic_id: Uuid, index: int) -> None:
        self.add_mask((topic_id, index >> BLOCK_BITS), 1 << (index & _LOW))

    def add_all(self, topic_id: Uuid, indexes: Sequence[int]) -> None:
        """Add partitions of a topic, in any order."""
        count = len(indexes)
        if count == 1:
            self.add_mask((topic_id, indexes[0] >> BLOCK_BITS), _BITS[indexes[0] & _LOW])
        if count <= 1:
            return
        low, high = min(indexes), max(indexes)
        if high - low == count - 1 and len(set(indexes)) == count:
            self.add_range(topic_id, low, high + 1)
        elif low >> BLOCK_BITS == high >> BLOCK_BITS:
            self.add_numbers((topic_id, low >> BLOCK_BITS), [index & _LOW for index in indexes])
        else:
            for index in indexes:
                self.add(topic_id, index)

    def add_range(self, topic_id: Uuid, start: int, stop: int) -> None:
        while start < stop:
            block = start >> BLOCK_BITS
            end = min(stop, (block + 1) << BLOCK_BITS)
            self.add_mask((topic_id, block), ((1 << (end - start)) - 1) << (start & _LOW))
            start = end

    def add_numbers(self, key: Block, numbers: Iterable[int]) -> None:
        """Add partitions by the numbers of their bits in a mask."""
        mask = 0
        for number in numbers:
            mask |= _BITS[number]
        self.add_mask(key, mask)

    def add_mask(self, key: Block, mask: int) -> None:
        self._blocks[key] = self._blocks.get(key, 0) | mask

    def update(self, added: PartitionSet) -> None:
        if not self._blocks:
            self._blocks.update(added.masks())
            return
        for key, mask in added.masks():
            self._blocks[key] = self._blocks.get(key, 0) | mask

    def remove(self, removed: PartitionSet) -> None:
        blocks = self._blocks
        for key, mask in removed.masks():
            rest = blocks.get(key, 0) & ~mask
            if rest:
                blocks[key] = rest
            else:
                blocks.pop(key, None)

    def common(self, partitions: PartitionSet) -> PartitionSet:
        """Return those of the partitions that are in this set."""
        blocks = self._blocks
        if not blocks:
            return NOTHING
        return PartitionSet({key: both for key, mask in partitions.masks() if (both := mask & blocks.get(key, 0))})

    def frozen(self) -> PartitionSet:
        """Return the set as it is now."""
        return PartitionSet(self._blocks.copy())

    def release(self) -> dict[Block, int]:
        """Return the blocks themselves, for a `PartitionSet`. This set must not be used afterwards."""
        return self._blocks


def sorted_parts(items: Collection[K], first_byte_of: Callable[[K], bytes]) -> Iterator[list[K]]:
    """Yield the items in parts, sorted, and empty parts before the first. To sort all at once may take too long.

    Ids of topics are random, so few begin with the same byte."""
    if len(items) <= SORTED_AT_ONCE:
        yield sorted(items)
        return
    parts: dict[bytes, list[K]] = {}
    for number, item in enumerate(items, 1):
        parts.setdefault(first_byte_of(item), []).append(item)
        if not number % SORTED_AT_ONCE:
            yield []
    for first in sorted(parts):
        yield sorted(parts[first])


def of_topics_in_steps(topics: Iterable[tuple[Uuid, Sequence[int]]]) -> Computation[PartitionSet]:
    """Return `PartitionSet.of_topics`, but in steps."""
    made, done = MutablePartitionSet(), 0
    for topic_id, indexes in topics:
        made.add_all(topic_id, indexes)
        done += len(indexes) + 1
        if done > STEP_ITEMS:
            done = 0
            yield
    return PartitionSet(made.release())


def numbers_of(mask: int) -> list[int]:
    """Return the numbers of the bits that are set, in order."""
    if not mask & (mask - 1):
        return [mask.bit_length() - 1] if mask else []
    count = mask.bit_count()
    if count > SPARSE_MAX:
        digits = bin(mask)[:1:-1].encode()
        return list(compress(range(BLOCK), digits.translate(_IS_SET)))
    numbers = []
    while mask:
        lowest = mask & -mask
        numbers.append(lowest.bit_length() - 1)
        mask ^= lowest
    return numbers


NOTHING = PartitionSet({})
