"""What was written and acknowledged against what can be read: the promises of acks=all with an idempotent producer.

Each partition gets the numbers 0, 1, 2, ... in that order. Whatever happened to brokers meanwhile, an acknowledged
number stands in the log once, at the offset that its acknowledgement named, behind all smaller ones.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple


class Read(NamedTuple):
    offset: int
    number: int


@dataclass(slots=True)
class PartitionHistory:
    """One partition as its writer saw it."""

    sent: int = 0
    offsets: dict[int, int] = field(default_factory=dict)
    """Acknowledged numbers."""
    acknowledged_at: list[float] = field(default_factory=list)
    """Seconds on a clock that never runs backwards, in order."""

    def acknowledge(self, number: int, offset: int, at: float) -> None:
        self.offsets[number] = offset
        self.acknowledged_at.append(at)

    def longest_gap(self, begin: float, end: float) -> float:
        """The longest time within an interval without an acknowledgement."""
        inside = [begin, *(at for at in self.acknowledged_at if begin < at < end), end]
        return max(later - earlier for earlier, later in pairwise(inside))


class Violations(NamedTuple):
    """All of them empty when the promises were kept."""

    lost: list[int]
    duplicated: list[int]
    reordered: list[tuple[int, int]]
    """Neighbours in the log of which the second should have come first."""
    moved: list[int]
    """Acknowledged at another offset than where they stand."""

    def __bool__(self) -> bool:
        return any(self)


def check(history: PartitionHistory, log: Sequence[Read]) -> Violations:
    counts = Counter(read.number for read in log)
    places = {read.number: read.offset for read in log}
    numbers = list(dict.fromkeys(read.number for read in log))
    return Violations(
        lost=sorted(history.offsets.keys() - counts.keys()),
        duplicated=sorted(number for number, count in counts.items() if count > 1),
        reordered=[pair for pair in pairwise(numbers) if pair[0] > pair[1]],
        moved=sorted(number for number, offset in history.offsets.items() if places.get(number, offset) != offset),
    )


def check_all(histories: Mapping[int, PartitionHistory], logs: Mapping[int, Sequence[Read]]) -> dict[int, Violations]:
    """The partitions whose promises were broken."""
    found = {partition: check(history, logs[partition]) for partition, history in histories.items()}
    return {partition: violations for partition, violations in found.items() if violations}
