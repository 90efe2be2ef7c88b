"""What the state machines on internal topics (groups, transactions) and the runtime that runs them say to each other.

    request -> operation(machine, now_ms) -> Decision -> records appended and replayed -> high watermark -> answers

A machine is pure: it knows neither its log nor the loop. Who asked it something is an `Asker`, which it may keep (a
member that waits for its group) and name in a later decision.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from sskafka.model.errors import ErrorCode


class StateRecord(NamedTuple):
    """A change of state as the internal topic keeps it; no value means that the key is forgotten."""

    key: bytes
    value: bytes | None


class TransactionalProducer(NamedTuple):
    """Whose transaction the records of a decision belong to."""

    producer_id: int
    producer_epoch: int


class Asker(Protocol):
    """Who asked, and is told once: when what was decided is committed, or that it will not be."""

    def answer(self, response: Any) -> None: ...

    def refuse(self, error: ErrorCode, message: str = "") -> None:
        """`message` is for the person who reads it; some answers have room for it."""
        ...


class Answer(NamedTuple):
    asker: Asker
    response: Any


@dataclass(slots=True)
class Decision:
    records: list[StateRecord] = field(default_factory=list)
    """Appended as they are, in one batch, before anything else is decided on what they say."""
    answers: list[Answer] = field(default_factory=list)
    """Given once the records, and everything that was decided before them, are committed."""
    is_replayed: bool = True
    """False where the machine has changed already and the records only write down what it is now."""
    is_divisible: bool = False
    """True where every record stands for itself: there may be more of them than a batch can hold."""
    producer: TransactionalProducer | None = None
    """Set for records that count only if this producer's transaction commits."""


class Timers(Protocol):
    """Deadlines of one machine. They end with it: none fires for a machine that is no longer in charge."""

    def schedule(self, key: Hashable, delay_ms: int, due: Callable[[int], Decision]) -> None:
        """Call `due` with the wall-clock time after `delay_ms`; a timer of the same key is replaced."""
        ...

    def cancel(self, key: Hashable) -> None: ...


class StateMachine(Protocol):
    """The state kept in one partition of an internal topic."""

    def replay(self, record: StateRecord, producer: TransactionalProducer | None) -> None:
        """Take in a record: from the log while loading, or as it was decided just now."""
        ...

    def replay_end_of_transaction(self, producer: TransactionalProducer, is_committed: bool) -> None:
        """The marker of a transaction is in the log: what it wrote counts now, or never will."""
        ...

    def start(self, now_ms: int) -> Decision:
        """All of the log has been replayed and requests may come: begin with the timers."""
        ...

    def stop(self) -> list[Asker]:
        """No longer in charge; gives those who are kept waiting."""
        ...
