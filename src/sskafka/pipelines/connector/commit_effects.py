"""The effects that operations of the commit protocol yield, and the results that they receive. Pure: no I/O."""

from collections.abc import Generator
from dataclasses import dataclass
from enum import IntEnum
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


class Written(IntEnum):
    """The outcome of a transaction of the driver; false if it is not known to be committed."""

    REFUSED = 0
    """Another process has taken the driver's id. The transaction may be committed or not."""
    RESENT = 1
    """Committed, but a request was sent again. A late copy of it would end the next transaction of this producer: the
    driver has to be fenced before it writes again."""
    ONCE = 2


@dataclass(frozen=True, slots=True)
class WriteDecision:
    """Write a decision in a transaction of the driver, and commit it. Result: `Written`."""

    decision: Decision
    driver: Transaction
    decides: bool = False
    """Whether this decides a batch. Fails before anything is written unless the outcome will have enough room, too."""


@dataclass(frozen=True, slots=True)
class CommitDriver:
    """Commit the transaction of the driver, in which a task has written. Result: `Written`."""

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
    """Abort the open transactions of this epoch, and fence their producers: they belong to attempts that failed or were
    superseded.

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
    | CommitDriver
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
