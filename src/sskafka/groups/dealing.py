"""Deals partitions to members one by one, always to the member with the fewest, and among equals to the first.

    loads 0 2 2     the first gets two partitions, and has two as the others; then all three get one in turn, and so on

The members with the fewest partitions, the hand, get one each until their load is that of the next one. So partitions
are dealt in runs over blocks of a set instead of one by one.
"""

from sskafka.groups.partition_set import Block, MutablePartitionSet, PartitionSet, numbers_of
from sskafka.groups.subscribers import STEP_ITEMS
from sskafka.model.computation import Computation, finished


class Dealer:
    """`loads`: the partitions that each member has already, in the order of the members."""

    def __init__(self, loads: list[int]) -> None:
        self._made = [MutablePartitionSet() for _ in loads]
        self._later = sorted(range(len(loads)), key=lambda rank: (-loads[rank], -rank))
        self._loads = loads
        self._hand: list[int] = []
        self._level = 0
        self._at = 0
        self._left = 0
        """Partitions that the hand takes before others join it."""

    def dealt(self, partitions: PartitionSet) -> list[PartitionSet]:
        """Deal the partitions, in the order of topic ids and indexes. Return those of each member."""
        return finished(self.steps(partitions))

    def steps(self, partitions: PartitionSet) -> Computation[list[PartitionSet]]:
        """Do the same in steps."""
        done = 0
        for part in partitions.sorted_parts():
            if not part:
                yield
            for key, mask in part:
                done += self._deal_block(key, mask)
                if done > STEP_ITEMS:
                    done = 0
                    yield
        return [PartitionSet(one.release()) for one in self._made]

    def _deal_block(self, key: Block, mask: int) -> int:
        """Return how many partitions there were."""
        if not self._left:
            self._extend_hand()
        if not mask & (mask - 1):  # one partition, as in topics that have one
            self._made[self._hand[self._at]].add_mask(key, mask)
            self._at = (self._at + 1) % len(self._hand)
            self._left -= 1
            return 1
        numbers = numbers_of(mask)
        self._deal_all(key, numbers)
        return len(numbers)

    def _deal_all(self, key: Block, numbers: list[int]) -> None:
        start = 0
        while start < len(numbers):
            if not self._left:
                self._extend_hand()
            stop = min(len(numbers), start + self._left)
            self._deal(key, numbers[start:stop])
            self._left -= stop - start
            start = stop

    def _extend_hand(self) -> None:
        later, loads = self._later, self._loads
        self._level = loads[later[-1]] if not self._hand else self._level
        while later and loads[later[-1]] <= self._level:
            self._hand.append(later.pop())
        self._hand.sort()
        next_level = loads[later[-1]] if later else self._level + (1 << 31)
        self._left = len(self._hand) * (next_level - self._level)
        self._level, self._at = next_level, 0

    def _deal(self, key: Block, numbers: list[int]) -> None:
        hand, made, at = self._hand, self._made, self._at
        size = len(hand)
        if len(numbers) < size:
            for number in numbers:
                made[hand[at]].add_mask(key, 1 << number)
                at = at + 1 if at + 1 < size else 0
        else:
            for place in range(size):
                made[hand[(at + place) % size]].add_numbers(key, numbers[place::size])
            at = (at + len(numbers)) % size
        self._at = at
