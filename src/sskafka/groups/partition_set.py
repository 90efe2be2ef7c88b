"""Sets of partitions as bit masks, so that groups with thousands of partitions are assigned in milliseconds.

    (topic id, block) -> mask        bit n of the mask: partition block * BLOCK + n is in the set

An operation on two sets is one operation on integers for each block of a topic, instead of one look-up for each
partition. Blocks bound the memory of a set by the number of its partitions, whatever their indexes are: clients and
records can name any int32.
"""

from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import compress
from typing import Any, cast

from sskafka.model.ids import Uuid

Partition = tuple[Uuid, int]
Block = tuple[Uuid, int]

BLOCK_BITS = 10
BLOCK = 1 << BLOCK_BITS
SPARSE_MAX = 12
"""Up to this many bits of a mask are found one by one."""

_LOW = BLOCK - 1
_BITS = [1 << number for number in range(BLOCK)]
_IS_SET = bytes.maketrans(b"01", b"\0\1")


class PartitionSet(AbstractSet[Partition]):
    """An immutable set of (topic id, index). Iteration is in the order of topic ids and indexes."""

    __slots__ = ("_blocks",)

    def __init__(self, blocks: dict[Block, int]) -> None:
        """Take over masks, none of which is 0."""
        self._blocks = blocks

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
        made = MutablePartitionSet()
        for topic_id, indexes in topics:
            made.add_all(topic_id, indexes)
        return made.frozen()

    @classmethod
    def of_counts(cls, counts: Mapping[Uuid, int]) -> "PartitionSet":
        """Return all partitions of topics with these numbers of partitions."""
        made = MutablePartitionSet()
        for topic_id, count in counts.items():
            made.add_range(topic_id, 0, count)
        return made.frozen()

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
            return self._blocks == other._blocks
        return self._blocks == PartitionSet.of(other)._blocks if isinstance(other, AbstractSet) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __or__(self, other: AbstractSet[Any]) -> "PartitionSet":
        more = PartitionSet.of(other)._blocks
        if not more:
            return self
        made = self._blocks.copy()
        for key, mask in more.items():
            made[key] = made.get(key, 0) | mask
        return PartitionSet(made)

    def __and__(self, other: AbstractSet[Any]) -> "PartitionSet":
        theirs = PartitionSet.of(other)._blocks
        return PartitionSet({key: both for key, mask in self._blocks.items() if (both := mask & theirs.get(key, 0))})

    def __sub__(self, other: AbstractSet[Any]) -> "PartitionSet":
        theirs = PartitionSet.of(other)._blocks
        return PartitionSet({key: rest for key, mask in self._blocks.items() if (rest := mask & ~theirs.get(key, 0))})

    def __le__(self, other: AbstractSet[Any]) -> bool:
        return not self - other

    def isdisjoint(self, other: Iterable[Any]) -> bool:
        theirs = PartitionSet.of(other)._blocks
        return not any(mask & theirs.get(key, 0) for key, mask in self._blocks.items())

    # -- parts of the set

    def in_topics(self, topics: AbstractSet[Uuid]) -> "PartitionSet":
        return PartitionSet({key: mask for key, mask in self._blocks.items() if key[0] in topics})

    def first(self, count: int) -> "PartitionSet":
        """Return the first `count` partitions, in the order of topic ids and indexes."""
        made: dict[Block, int] = {}
        for key in sorted(self._blocks):
            mask = self._blocks[key]
            if mask.bit_count() > count:
                mask = sum(map(_BITS.__getitem__, numbers_of(mask)[:count]))
            if mask:
                made[key] = mask
            count -= mask.bit_count()
            if count <= 0:
                break
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


class MutablePartitionSet:
    """A set that is built or kept up to date. The cost of a change depends on the change, not on the set."""

    __slots__ = ("_blocks",)

    def __init__(self, blocks: dict[Block, int] | None = None) -> None:
        self._blocks: dict[Block, int] = {} if blocks is None else blocks

    def copy(self) -> "MutablePartitionSet":
        return MutablePartitionSet(self._blocks.copy())

    def __bool__(self) -> bool:
        return bool(self._blocks)

    def add(self, topic_id: Uuid, index: int) -> None:
        self.add_mask((topic_id, index >> BLOCK_BITS), 1 << (index & _LOW))

    def add_all(self, topic_id: Uuid, indexes: Sequence[int]) -> None:
        """Add partitions of a topic, in any order."""
        count = len(indexes)
        if count <= 1:
            for index in indexes:
                self.add(topic_id, index)
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
        return PartitionSet({key: both for key, mask in partitions.masks() if (both := mask & blocks.get(key, 0))})

    def frozen(self) -> PartitionSet:
        """Return the set as it is now."""
        return PartitionSet(self._blocks.copy())


def numbers_of(mask: int) -> list[int]:
    """Return the numbers of the bits that are set, in order."""
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
