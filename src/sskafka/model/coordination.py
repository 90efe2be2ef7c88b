"""What coordinators (groups, transactions) and the runtime that keeps their state in internal topics say to each other.

    request -> operation(shard, now_ms) -> CoordinatorResult: records are encoded, replayed and appended
                                        -> the high watermark passes them: the answer leaves, the effects happen

The state of a coordinator is pure: it knows neither its log nor the event loop. An operation decides: it reads the
state, returns a `CoordinatorResult` and changes nothing that the log keeps. Only `replay` changes that, both on the
broker that decided and on a broker that loads the log.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Generic, Literal, NamedTuple, Protocol, TypeVar

from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ProducerIdAndEpoch

R = TypeVar("R")
"""A record as the coordinator knows it."""
A = TypeVar("A")
"""What a decision answers."""


class StateRecord(NamedTuple):
    """A record as the internal topic keeps it; a tombstone has no value."""

    key: bytes
    value: bytes | None


class Completion(Protocol):
    """Whoever waits for an answer: told once, when the decision is committed or when it failed."""

    def answer(self, response: Any) -> None: ...

    def refuse(self, error: ErrorCode, message: str = "") -> None:
        """`message` is for people; some responses have a field for it."""
        ...


class _Parked(Enum):
    PARKED = "parked"


PARKED: Final = _Parked.PARKED
"""The answer of a decision that leaves its requester waiting: a later decision answers with `Respond`."""
NoAnswer = Literal[_Parked.PARKED]


class Respond(NamedTuple):
    """An effect: answer a request that an earlier decision has parked."""

    completion: Completion
    response: Any


@dataclass(frozen=True, slots=True)
class CoordinatorResult(Generic[R, A]):
    records: Sequence[R] = ()
    """Encoded once and appended in one batch, before anything else is decided on what they say."""
    answer: A | NoAnswer = PARKED
    """For whoever asked; leaves when the records, and everything that was decided before them, are committed."""
    effects: Sequence[object] = ()
    """What follows, in this order, once the records are committed. Nothing of it happens when they are not, except that
    a `Respond` passes the error on."""
    is_divisible: bool = False
    """True where every record stands for itself: there may be more of them than a batch can hold."""
    producer: ProducerIdAndEpoch | None = None
    """Set for records that count only if this producer's transaction commits."""
    if_too_large: "Callable[[int], CoordinatorResult[R, A]] | None" = None
    """Decides instead, given the time, where the records fit into no batch. None: the requester gets an error."""

    def __add__(self, other: "CoordinatorResult[R, A]") -> "CoordinatorResult[R, A]":
        """Both, in this order; at most one of them answers."""
        assert self.if_too_large is None, "it would decide without what comes behind it"
        otherwise = other.if_too_large
        return CoordinatorResult(
            [*self.records, *other.records],
            self.answer if other.answer is PARKED else other.answer,
            [*self.effects, *other.effects],
            is_divisible=self.is_divisible or other.is_divisible,
            if_too_large=None if otherwise is None else lambda now_ms: self + otherwise(now_ms),
        )


class Timers(Protocol):
    """Deadlines of one shard. They end with it: none fires for a shard that is no longer in charge."""

    def schedule(self, key: Hashable, delay_ms: int, due: "Callable[[int], CoordinatorResult[Any, None]]") -> None:
        """Call `due` with the wall-clock time after `delay_ms`; a timer of the same key is replaced."""
        ...

    def cancel(self, key: Hashable) -> None: ...


class CoordinatorShard(Protocol[R]):
    """The state kept in one partition of an internal topic."""

    def encode(self, record: R) -> StateRecord: ...

    def decode(self, record: StateRecord) -> R | None:
        """None for records of kinds that this software does not know."""
        ...

    def replay(self, record: R, producer: ProducerIdAndEpoch | None) -> None:
        """Change the state as the record says: it was decided just now, or read from the log."""
        ...

    def replay_end_of_transaction(self, producer: ProducerIdAndEpoch, is_committed: bool) -> None:
        """The marker of a transaction is in the log: what it wrote counts now, or never will."""
        ...

    def start(self, now_ms: int) -> CoordinatorResult[R, None]:
        """All of the log has been replayed and requests may come: begin with the timers."""
        ...

    def stop(self) -> list[Completion]:
        """No longer in charge; returns those who are kept waiting."""
        ...
