"""Compares what was acknowledged with what can be read: the promises of acks=all with an idempotent producer.

Each partition gets the numbers 0, 1, 2, ... in that order. Whatever happens to brokers meanwhile, an acknowledged
number must be in the log once, at the offset that its acknowledgement named, behind all smaller numbers.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

SHOWN_MAX = 10
"""Violations of one kind that a report lists one by one."""
NEARBY = 2


class Read(NamedTuple):
    offset: int
    number: int
    leader_epoch: int = -1

    def __str__(self) -> str:
        return f"{self.number} at offset {self.offset} (epoch {self.leader_epoch})"


@dataclass(slots=True)
class PartitionHistory:
    """One partition as its writer saw it."""

    sent: int = 0
    offsets: dict[int, int | None] = field(default_factory=dict)
    """Acknowledged numbers. None where the client was not told the offset: librdkafka reports a batch as stored, with
    no offset, when its request timed out but a later batch of the same producer was acknowledged. The sequence numbers
    prove that the earlier batch is in the log; so it must be there once and in order, wherever that is."""
    acknowledged_at: list[float] = field(default_factory=list)
    """Seconds on a clock that never runs backwards, in order."""

    def acknowledge(self, number: int, offset: int | None, at: float) -> None:
        self.offsets[number] = offset
        self.acknowledged_at.append(at)

    @property
    def end_offset(self) -> int:
        """The log must reach at least this far."""
        return max((offset + 1 for offset in self.offsets.values() if offset is not None), default=0)

    def longest_gap(self, begin: float, end: float) -> float:
        """The longest time within an interval without an acknowledgement."""
        inside = [begin, *(at for at in self.acknowledged_at if begin < at < end), end]
        return max(later - earlier for earlier, later in pairwise(inside))


class Violations(NamedTuple):
    """All of them empty when the promises were kept."""

    lost: list[int]
    duplicated: list[int]
    reordered: list[tuple[int, int]]
    """Pairs of adjacent records of which the second should have come first."""
    moved: list[int]
    """Acknowledged at another offset than where they stand."""
    never_sent: list[int]
    """In the log although this writer did not send them."""

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
        moved=sorted(
            number
            for number, offset in history.offsets.items()
            if offset is not None and places.get(number, offset) != offset
        ),
        never_sent=sorted(number for number in counts if not 0 <= number < history.sent),
    )


def check_all(histories: Mapping[int, PartitionHistory], logs: Mapping[int, Sequence[Read]]) -> dict[int, Violations]:
    """The partitions whose promises were broken."""
    found = {partition: check(history, logs[partition]) for partition, history in histories.items()}
    return {partition: violations for partition, violations in found.items() if violations}


def describe(where: str, violations: Violations, history: PartitionHistory, log: Sequence[Read]) -> str:
    """Say for each broken promise which number it was, where it was acknowledged and what the log has there."""
    places: dict[int, list[int]] = {}
    for position, read in enumerate(log):
        places.setdefault(read.number, []).append(position)
    at_offset = {read.offset: position for position, read in enumerate(log)}

    def seen(number: int) -> str:
        return "; ".join(around(log, position) for position in places.get(number, [])) or "not in the log"

    def acknowledged(number: int) -> str:
        if number not in history.offsets:
            return "not acknowledged"
        offset = history.offsets[number]
        return "acknowledged without an offset" if offset is None else f"acknowledged at offset {offset}"

    def instead(number: int) -> str:
        offset = history.offsets[number]
        position = None if offset is None else at_offset.get(offset)
        return "nothing is at that offset" if position is None else f"there now: {around(log, position)}"

    ends = f"{log[0]} .. {log[-1]}" if log else "empty"
    lines = [f"{where}: sent {history.sent}, acknowledged {len(history.offsets)}, log {len(log)} records: {ends}"]
    lines += listed("lost", (f"{number} {acknowledged(number)}, {instead(number)}" for number in violations.lost))
    for kind in ("duplicated", "moved", "never_sent"):
        numbers: list[int] = getattr(violations, kind)
        lines += listed(kind, (f"{number} {acknowledged(number)}: {seen(number)}" for number in numbers))
    lines += listed("reordered", (f"{a} before {b}: {seen(a)} / {seen(b)}" for a, b in violations.reordered))
    return "\n".join(lines)


def around(log: Sequence[Read], position: int) -> str:
    """A record and the records next to it in the log."""
    window = log[max(0, position - NEARBY) : position + NEARBY + 1]
    return "[" + ", ".join(map(str, window)) + "]"


def listed(kind: str, lines: Iterable[str]) -> list[str]:
    every = [f"  {kind}: {line}" for line in lines]
    rest = len(every) - SHOWN_MAX
    return every[:SHOWN_MAX] + ([f"  {kind}: and {rest} more, the last {every[-1]}"] if rest > 0 else [])
