"""The interface between coordinators (groups, transactions) and the runtime that keeps their state in internal topics.

    request -> operation(shard, now_ms) -> CoordinatorResult: records are encoded, replayed and appended
                                        -> the high watermark passes them: the answer is sent, effects happen

The state of a coordinator is pure: it knows neither its log nor the event loop. An operation decides: it reads the
state, returns a `CoordinatorResult` and changes nothing that the log keeps. Only `replay` changes that, both on the
broker that decided and on a broker that loads the log.
"""

from collections.abc import Callable, Hashable, Sequence
from enum import Enum
from typing import Any, Final, Generic, Literal, NamedTuple, Protocol, TypeVar

from sskafka.model.computation import Computation
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ProducerIdAndEpoch
from sskafka.model.values import value

R = TypeVar("R")
"""A typed record of a coordinator."""
A = TypeVar("A")
"""The answer of a decision."""


class StateRecord(NamedTuple):
    """An encoded record of an internal topic; a tombstone has no value."""

    key: bytes
    value: bytes | None


class Completion(Protocol):
    """The requester of a decision. One method is called, once, when the decision is committed or has failed."""

    def answer(self, response: Any) -> None: ...

    def refuse(self, error: ErrorCode, message: str = "") -> None:
        """`message` is for people. Only some responses have a field for it."""
        ...


class CallbackCompletion:
    """A completion that calls one of two functions: `answered(response)` or `refused(error, message)`."""

    __slots__ = ("_answered", "_refused")

    def __init__(self, answered: Callable[[Any], None], refused: Callable[[ErrorCode, str], None]) -> None:
        self._answered = answered
        self._refused = refused

    def answer(self, response: Any) -> None:
        self._answered(response)

    def refuse(self, error: ErrorCode, message: str = "") -> None:
        self._refused(error, message)


class _Parked(Enum):
    PARKED = "parked"


PARKED: Final = _Parked.PARKED
"""The answer of a decision whose requester has to wait: a later decision answers with `Respond`."""
NoResponse = Literal[_Parked.PARKED]


class Respond(NamedTuple):
    """An effect: answer a request that an earlier decision has parked."""

    completion: Completion
    response: Any


@value
class CoordinatorResult(Generic[R, A]):
    records: Sequence[R] = ()
    """Encoded once, replayed before the next decision, and appended in one batch."""
    answer: A | NoResponse = PARKED
    """Sent when the records, and those of all earlier decisions, are committed."""
    effects: Sequence[object] = ()
    """Carried out in this order once the records are committed. If they are not, no effect happens, except that a
    `Respond` passes on the error."""
    is_divisible: bool = False
    """True if the records are independent of each other, so that they may be split into several batches."""
    producer: ProducerIdAndEpoch | None = None
    """Set for records that take effect only if this producer's transaction commits."""
    if_too_large: "Callable[[int], CoordinatorResult[R, A]] | None" = None
    """Called with the time to decide otherwise if the records fit into no batch, or one of them does not although they
    may be split. None: the requester gets an error."""

    def __add__(self, other: "CoordinatorResult[R, A]") -> "CoordinatorResult[R, A]":
        """Combine two results, in this order. At most one of them has an answer."""
        assert self.if_too_large is None, "if_too_large would ignore the result that follows"
        otherwise = other.if_too_large
        return CoordinatorResult(
            [*self.records, *other.records],
            self.answer if other.answer is PARKED else other.answer,
            [*self.effects, *other.effects],
            is_divisible=self.is_divisible or other.is_divisible,
            if_too_large=None if otherwise is None else lambda now_ms: self + otherwise(now_ms),
        )


class Timers(Protocol):
    """Timers of one shard. None fires after the shard was stopped."""

    def schedule(self, key: Hashable, delay_ms: int, due: "Callable[[int], CoordinatorResult[Any, None]]") -> None:
        """Call `due` with the wall-clock time after `delay_ms`. This replaces a timer with the same key."""
        ...

    def cancel(self, key: Hashable) -> None: ...

    def __contains__(self, key: Hashable) -> bool:
        """Return whether a timer with the key is set and has not fired."""
        ...


class CoordinatorShard(Protocol[R]):
    """The state in one partition of an internal topic, as Kafka's CoordinatorShard."""

    def encode(self, record: R) -> StateRecord: ...

    def decode(self, record: StateRecord) -> R | None:
        """Return the typed record, or None for records of unknown types."""
        ...

    def decode_in_steps(self, record: StateRecord) -> Computation[R | None]:
        """As `decode`, for a long record."""
        ...

    def replay(self, record: R, producer: ProducerIdAndEpoch | None) -> None:
        """Apply a record to the state. It was just decided, or read from the log."""
        ...

    def replay_end_of_transaction(self, producer: ProducerIdAndEpoch, is_committed: bool) -> None:
        """Apply a transaction marker: the records of the transaction take effect, or are dropped."""
        ...

    def start(self, now_ms: int) -> CoordinatorResult[R, None]:
        """Called when the whole log has been replayed: start timers. Requests follow."""
        ...

    def stop(self) -> list[Completion]:
        """Stop. Return the completions of parked requests."""
        ...
