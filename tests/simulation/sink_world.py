"""A model of the brokers that a sink talks to: transaction coordinator, control topic, and the topic it writes.

Transactions are those of the first version: an initialized id fences and aborts, an end may be repeated, a timeout
aborts. What the protocol asks for in one effect, but clients do in several requests, is several steps here. Readers
that want committed records wait for the first open transaction.
"""

import random
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from sskafka.client.transactions import Transaction
from sskafka.pipelines.connector import commit_effects as effects
from sskafka.pipelines.connector.commit_effects import Condition, Written
from sskafka.pipelines.connector.decision import Decision, Fate, Part, Phase

DRIVER = "driver"
OPERATOR = "operator"
TIMEOUT_MS = 1_000
RESERVE_MS = 200


class BrokersAwayError(Exception):
    """No answer came. What was asked may have been done."""


class FencedProducerError(Exception):
    """What a producer hears whose id was initialized again, or whose transaction is over."""


@dataclass(slots=True)
class Producer:
    epoch: int = 0
    state: str = "Empty"
    rows: list[str] = field(default_factory=list)
    first_offset: int | None = None
    """Where the rows of the open transaction begin."""
    start_ms: float = 0
    decision: Decision | None = None
    """Written in the open transaction of the driver: it counts when the transaction is committed."""


class World:
    def __init__(self, rng: random.Random, *, two_phase: bool) -> None:
        self.rng = rng
        self.two_phase = two_phase
        self.now_ms = 0.0
        self.producers: dict[str, Producer] = {}
        self.fates: dict[Transaction, bool] = {}
        self.control: list[Decision] = []
        self.topic: set[str] = set()
        self.excused_lost: set[str] = set()
        self.excused_double: set[str] = set()
        """Rows of a batch that an operator has declared written, or missing."""
        self.sweeps_that_miss = 0
        """How many sweeps do not find a transaction, though everything else is in order."""
        self.late_copies: list[Transaction] = []
        """Transactions of the driver whose commit was sent twice. One of the two requests is still on its way."""
        self._next_offset = 0
        self.faults = True
        self.timed_out_after_decision = 0
        self._next_timeout_ms = 0.0
        """Brokers look for transactions that timed out from time to time."""

    @property
    def last(self) -> Decision | None:
        return self.control[-1] if self.control else None

    # -- what the coordinator does

    def initialize(self, name: str) -> Transaction:
        producer = self.producers.get(name)
        if producer is None:
            producer = self.producers[name] = Producer()
        else:
            if producer.state == "Ongoing":
                self._abort(name, producer, "initialized by another producer")
            producer.epoch += 1
        producer.state = "Empty"
        return Transaction(name, 1, producer.epoch)

    def add(self, transaction: Transaction, row: str, *, adds_partition: bool = True) -> int:
        """Write a row, and return its offset. A producer adds the partition to its transaction only once."""
        producer = self._producer(transaction)
        assert adds_partition or producer.state == "Ongoing", (
            f"{transaction} is left open: its coordinator has ended it"
        )
        self._open(producer)
        producer.rows.append(row)
        offset, self._next_offset = self._next_offset, self._next_offset + 1
        if producer.first_offset is None:
            producer.first_offset = offset
        return offset

    def add_decision(self, transaction: Transaction, decision: Decision) -> None:
        """Write a decision in the driver's transaction, which stays open."""
        producer = self._producer(transaction)
        self._open(producer)
        producer.decision = decision

    def _open(self, producer: Producer) -> None:
        if producer.state != "Ongoing":
            producer.state, producer.start_ms, producer.rows = "Ongoing", self.now_ms, []
            producer.decision = producer.first_offset = None

    def _producer(self, transaction: Transaction) -> Producer:
        producer = self.producers[transaction.transactional_id]
        if producer.epoch != transaction.producer_epoch:
            raise FencedProducerError
        return producer

    def end(self, transaction: Transaction, *, commit: bool) -> None:
        producer = self._producer(transaction)
        if producer.state == "Ongoing":
            if commit:
                self._commit(transaction, producer)
            else:
                self._abort(transaction.transactional_id, producer, "aborted by a client")
        elif producer.state != ("CompleteCommit" if commit else "CompleteAbort"):
            raise FencedProducerError

    def _commit(self, transaction: Transaction, producer: Producer) -> None:
        producer.state = "CompleteCommit"
        self.fates[transaction] = True
        if producer.decision is not None:
            self._check_owner(producer.decision)
            self._note_declared(producer.decision)
            self.control.append(producer.decision)
        for row in producer.rows:
            assert row not in self.topic or row in self.excused_double, f"row {row} is there twice"
            self.topic.add(row)

    def _note_declared(self, decision: Decision) -> None:
        """An operator decides by hand what becomes of a batch that is partly there."""
        last = self.last
        if last is None or last.phase is not Phase.PARTIAL or not decision.owner.session.startswith(OPERATOR):
            return
        if decision.is_committed:
            fate, excused = Fate.ABORTED, self.excused_lost
            if decision.batch != last.batch:
                fate, excused = Fate.COMMITTED, self.excused_double
            excused.update(row for part in last.parts_that(fate) for row in rows_of(last.batch, part.slot))

    def _abort(self, name: str, producer: Producer, cause: str, *, by_timeout: bool = False) -> None:
        transaction = Transaction(name, 1, producer.epoch)
        last = self.last
        open_parts = () if last is None else last.parts_that(Fate.OPEN)
        if last is not None and last.phase is Phase.DECIDED and transaction in {one.transaction for one in open_parts}:
            assert by_timeout, f"{transaction} was decided and then {cause}"
            self.timed_out_after_decision += 1
        producer.state = "CompleteAbort"
        self.fates[transaction] = False

    def pass_time(self, milliseconds: float) -> None:
        self.now_ms += milliseconds
        if self.late_copies and self.rng.random() < 0.1:
            with suppress(FencedProducerError):
                self.end(self.late_copies.pop(), commit=True)
        if self.now_ms < self._next_timeout_ms:
            return
        self._next_timeout_ms = self.now_ms + TIMEOUT_MS / 20
        for name, producer in self.producers.items():
            if self.two_phase and name != DRIVER:
                continue
            if producer.state == "Ongoing" and self.now_ms > producer.start_ms + TIMEOUT_MS:
                self._abort(name, producer, "timed out", by_timeout=True)
                producer.epoch += 1

    def open_ids(self) -> list[str]:
        """The ids of tasks that have an open transaction."""
        return [name for name, of in self.producers.items() if of.state == "Ongoing" and name != DRIVER]

    # -- what the protocol asks for

    def perform(self, effect: effects.Effect) -> Any:
        """A request, or a generator of several."""
        match effect:
            case effects.FenceDriver():
                return lambda: self.initialize(DRIVER)
            case effects.ReadDecision():
                return lambda: self.last
            case effects.PeekDecision():
                return self._peek
            case effects.WriteDecision(decision, driver, _):
                return self._write(decision, driver)
            case effects.CommitDriver(driver):
                return self._commit_driver(driver)
            case effects.InspectParts(parts):
                return self._in_any_order(self._inspect, parts)
            case effects.CommitParts(parts):
                return self._in_any_order(self._commit_part, parts)
            case effects.AbortPart(part):
                return self._abort_if_possible(part.transaction)
            case effects.LookUp(part):
                return lambda: self._look_up(part)
            case effects.AbortOlder(epoch):
                return self._abort_older(epoch)
            case effects.AbortLeftovers(epoch):
                return self._abort_leftovers(epoch)
            case effects.Pause():
                return lambda: None

    def _peek(self) -> Decision | None:
        stale = self.faults and len(self.control) > 1 and self.rng.random() < 0.1
        return self.control[-2] if stale else self.last

    def _write(self, decision: Decision, driver: Transaction) -> Generator[Any, Any, Written]:
        try:
            yield lambda: self.add_decision(driver, decision)
        except FencedProducerError:
            return Written.REFUSED
        return (yield from self._commit_driver(driver))

    def _commit_driver(self, driver: Transaction) -> Generator[Any, Any, Written]:
        try:
            yield lambda: self.end(driver, commit=True)
            if self.faults and self.rng.random() < 0.1:  # the client asks again, and hears what holds by then
                yield lambda: self.end(driver, commit=True)
                self.late_copies.append(driver)
                return self.resent()
        except FencedProducerError:
            return Written.REFUSED
        return Written.ONCE

    def resent(self) -> Written:
        return Written.RESENT

    def _look_up(self, part: Part) -> bool | None:
        """What readers see of a part: they wait for a transaction that is open before it."""
        assert part.place is not None
        for producer in self.producers.values():
            first = producer.first_offset
            if producer.state == "Ongoing" and first is not None and first < part.place.offset:
                raise BrokersAwayError("an open transaction hides the part")
        return self.fates.get(part.transaction)

    def _check_owner(self, decision: Decision) -> None:
        """Only the owner of an epoch decides in it; a claim carries over what was decided before."""
        before = () if self.last is None else self.last.transactions
        new = [part.transaction for part in decision.parts if part.transaction not in before]
        epochs = {epoch_of(transaction.transactional_id) for transaction in new if transaction[0] not in {DRIVER, ""}}
        assert epochs <= {decision.epoch}, f"transactions of epochs {epochs} are decided in epoch {decision.epoch}"

    def _in_any_order(self, ask: Callable[[Part], Any], parts: tuple[Part, ...]) -> Generator[Any, Any, list[Any]]:
        """Each part is a step, and others do theirs in between."""
        answers: dict[int, Any] = {}
        for place in self.rng.sample(range(len(parts)), len(parts)):
            answers[place] = yield lambda part=parts[place]: ask(part)
        return [answers[place] for place in range(len(parts))]

    def _inspect(self, part: Part) -> Condition:
        producer = self.producers[part.transaction.transactional_id]
        is_same = producer.epoch == part.transaction.producer_epoch
        left = float("inf") if self.two_phase else producer.start_ms + TIMEOUT_MS - self.now_ms
        return Condition(is_same and producer.state == "Ongoing", producer.state, left)

    def _commit_part(self, part: Part) -> str:
        try:
            self.end(part.transaction, commit=True)
        except FencedProducerError:
            return "refused"
        return ""

    def _abort_exactly(self, transaction: Transaction) -> None:
        with suppress(FencedProducerError):
            self.end(transaction, commit=False)

    def end_leftover(self, transaction: Transaction) -> None:
        """Abort exactly this transaction, and fence its producer."""
        if self.producers[transaction.transactional_id].epoch == transaction.producer_epoch:
            self.initialize(transaction.transactional_id)

    def _abort_if_possible(self, transaction: Transaction) -> Generator[Any, Any, None]:
        """Brokers that are away leave it open, and nobody is told."""
        with suppress(BrokersAwayError):
            yield lambda: self._abort_exactly(transaction)

    def _listed(self) -> list[str]:
        """The ids with an open transaction, without those whose coordinator changes at this moment."""
        found = self.open_ids()
        if found and self.sweeps_that_miss:
            self.sweeps_that_miss -= 1
            return []
        return [name for name in found if not self.faults or self.rng.random() > 0.05]

    def _abort_older(self, epoch: int) -> Generator[Any, Any, None]:
        yield from self._fence_older((yield self._listed), epoch)

    def _fence_older(self, names: list[str], epoch: int) -> Generator[Any, Any, None]:
        for name in names:
            if self.is_older(name, epoch):
                yield lambda name=name: self.initialize(name)

    def is_older(self, name: str, epoch: int) -> bool:
        return epoch_of(name) < epoch

    def _abort_leftovers(self, epoch: int) -> Generator[Any, Any, None]:
        found: list[str] = yield self._listed
        seen = [Transaction(name, 1, self.producers[name].epoch) for name in found if epoch_of(name) == epoch]
        for transaction in seen:
            with suppress(BrokersAwayError):
                yield lambda one=transaction: self.end_leftover(one)
        yield from self._fence_older(found, epoch)


def epoch_of(name: str) -> int:
    return int(name.split("-", maxsplit=1)[0])


def rows_of(batch: int, slot: int) -> Iterator[str]:
    for row in range(2):
        yield f"{batch}/{slot}/{row}"
