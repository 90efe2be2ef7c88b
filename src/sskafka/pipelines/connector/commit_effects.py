"""The effects that operations of the commit protocol yield, and the results that they receive. Pure: no I/O."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar

from sskafka.client.transactions import Transaction
from sskafka.pipelines.connector.decision import Decision, Part

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FenceDriver:
    """Initialize the transactional id of the query's driver. Result: its `Transaction`."""


@dataclass(frozen=True, slots=True)
class ReadDecision:
    """Read the last committed decision of the query. Result: a `Decision`, or None."""


@dataclass(frozen=True, slots=True)
class PeekDecision:
    """As `ReadDecision`, but without waiting for open transactions: the result may be older than the last decision."""


@dataclass(frozen=True, slots=True)
class WriteDecision:
    """Write a decision. Result: False if another process has taken the driver's id; then the record may be there or
    not."""

    decision: Decision
    driver: Transaction


@dataclass(frozen=True, slots=True)
class InspectParts:
    """Ask the coordinators for the states of transactions, in any order. Result: a `Condition` for each part."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class CommitParts:
    """Commit transactions, in any order. Result: for each part, empty if it is committed, otherwise the reason why it
    never can be."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class AbortPart:
    """Abort a transaction that nobody will commit; a failure does no harm."""

    part: Part


@dataclass(frozen=True, slots=True)
class LookUp:
    """Ask whether the part is visible to read_committed readers. Result: None if its records no longer exist.

    Fails if that cannot be determined now, for instance because a transaction that began before is still open."""

    part: Part


@dataclass(frozen=True, slots=True)
class AbortOlder:
    """Abort the open transactions of earlier epochs of the query, and fence their producers."""

    epoch: int


@dataclass(frozen=True, slots=True)
class AbortLeftovers:
    """Abort the open transactions of this epoch, which belong to attempts that failed or were superseded.

    Also those of earlier epochs: a sweep does not find a transaction whose coordinator changes at that moment."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for a short random time, so that two processes do not fence each other forever."""

    tries: int


Effect: TypeAlias = (
    FenceDriver
    | ReadDecision
    | PeekDecision
    | WriteDecision
    | InspectParts
    | CommitParts
    | AbortPart
    | LookUp
    | AbortOlder
    | AbortLeftovers
    | Pause
)
Steps: TypeAlias = Generator[Effect, Any, T]


class Condition(NamedTuple):
    """The state of a transaction as its coordinator describes it."""

    is_open: bool
    """Whether the same transaction is neither committed nor aborted."""
    state: str
    time_left_ms: float = float("inf")
