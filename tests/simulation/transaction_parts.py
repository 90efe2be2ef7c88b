"""The parts of a simulated transaction: a coordinator with a log that may lose its tail, leaders with real partition
logs, and a network between them that delays, repeats and loses."""

from collections.abc import Callable, Hashable
from random import Random
from typing import Any

from logs import NOW_MS, batch, marker, reopen
from simulated_disk import SimulatedDisk
from virtual_time import VirtualTime

from sskafka.model.coordination import PARKED, CoordinatorResult, Respond, StateRecord
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ProducerIdAndEpoch, TopicPartition
from sskafka.storage.errors import (
    InvalidProducerEpochError,
    InvalidTransactionStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from sskafka.transactions.shard import SendMarkers, TransactionCoordinatorShard, TransactionLimits

LIMITS = TransactionLimits(timeout_max_ms=60_000, expiration_ms=10**9, sweep_interval_ms=200, expiry_interval_ms=10**9)
REFUSALS = {
    InvalidProducerEpochError: ErrorCode.INVALID_PRODUCER_EPOCH,
    InvalidTransactionStateError: ErrorCode.INVALID_TXN_STATE,
    OutOfOrderSequenceError: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    TransactionCoordinatorFencedError: ErrorCode.TRANSACTION_COORDINATOR_FENCED,
}
Reply = Callable[[Any], None]


class Network:
    """Delivers a request to `work`, perhaps late, twice or never, and likewise what it replies."""

    def __init__(self, time: VirtualTime, random: Random) -> None:
        self.time = time
        self._random = random
        self.is_calm = False

    def send(self, work: Callable[[Reply], None], reply: Reply, *, in_order: bool = False) -> None:
        """`in_order`: as on one connection, where nothing is repeated or overtaken, only lost."""
        answered: list[None] = []

        def first_only(response: Any) -> None:
            if not answered:
                answered.append(None)
                reply(response)

        for _ in range(2 if not in_order and self._happens(0.1) else 1):
            self._later(lambda: work(lambda response: self._later(lambda: first_only(response), in_order)), in_order)

    def _later(self, call: Callable[[], None], in_order: bool = False) -> None:
        if self._happens(0.03):
            return
        is_slow = not in_order and self._happens(0.05)
        self.time.call_later(self._random.uniform(0.05, 3.0) if is_slow else self._random.uniform(0, 0.01), call)

    def _happens(self, probability: float) -> bool:
        return not self.is_calm and self._random.random() < probability


class Coordinator:
    """Its log is committed a little later than written; a crash loses what was not, and whoever waited for it."""

    def __init__(self, time: VirtualTime, network: Network, random: Random) -> None:
        self._time = time
        self._network = network
        self._random = random
        self._log: list[StateRecord] = []
        self._committed = 0
        self._waiting: list[tuple[int, object]] = []
        self._sending: dict[str, SendMarkers] = {}
        self.partitions: dict[TopicPartition, Leader] = {}
        self.epoch = 0
        self.next_id = 0
        self.crashes = 0
        self._load()

    def _load(self) -> None:
        self.shard = TransactionCoordinatorShard(self.epoch, Timers(self._time, self), LIMITS, lambda: 2)
        self._sending.clear()
        for record in self._log:
            decoded = self.shard.decode(record)
            assert decoded is not None
            self.shard.replay(decoded, None)
        self.take(self.shard, self.shard.start(self._time.now_ms()))

    def crash(self, only: TransactionCoordinatorShard | None = None) -> None:
        """Whichever shard is there, or none but `only`."""
        if only is not None and only is not self.shard:
            return
        self.shard.stop()
        waiting, self._waiting = self._waiting, []
        del self._log[self._random.randint(self._committed, len(self._log)) :]
        for _, effect in waiting:
            if isinstance(effect, Respond):
                effect.completion.refuse(ErrorCode.NOT_COORDINATOR)
        self.epoch += 1
        self.crashes += 1
        self._load()

    def ask(
        self, operation: Callable[[TransactionCoordinatorShard, int], CoordinatorResult[Any, Any]], reply: Reply
    ) -> None:
        self.take(self.shard, operation(self.shard, self._time.now_ms()), reply)

    def take(
        self, shard: TransactionCoordinatorShard, decision: CoordinatorResult[Any, Any], reply: Reply | None = None
    ) -> None:
        if shard is not self.shard:
            return
        for record in decision.records:
            self._log.append(shard.encode(record))
            shard.replay(record, None)
        effects = list(decision.effects)
        if reply is not None and decision.answer is not PARKED:
            effects.insert(0, Respond(Told(reply), decision.answer))
        self._waiting += [(len(self._log), effect) for effect in effects]
        end, is_slow = len(self._log), self._random.random() < 0.2
        delay_s = self._random.uniform(0, 0.6 if is_slow else 0.02)
        self._time.call_later(delay_s, lambda: self._commit(shard, end))
        if is_slow and decision.records and not self._network.is_calm and self._random.random() < 0.1:
            self._time.call_later(self._random.uniform(0, 0.02), lambda: self.crash(shard))

    def _commit(self, shard: TransactionCoordinatorShard, end: int) -> None:
        if shard is not self.shard:
            return
        self._committed = max(self._committed, end)
        ready = [effect for offset, effect in self._waiting if offset <= self._committed]
        self._waiting = [item for item in self._waiting if item[0] > self._committed]
        for effect in ready:
            self.perform(effect)

    def perform(self, effect: object) -> None:
        match effect:
            case Respond(completion, response):
                completion.answer(response)
            case SendMarkers() if self._sending.get(effect.transaction.transactional_id) != effect:
                self._sending[effect.transaction.transactional_id] = effect
                self._send_markers(self.shard, effect)

    def new_producer_id(self) -> int:
        self.next_id += 1
        return self.next_id

    # -- markers

    def _send_markers(self, shard: TransactionCoordinatorShard, prepared: SendMarkers) -> None:
        waiting = set(prepared.transaction.partitions)
        if not waiting:
            self.take(shard, shard.complete(prepared, self._time.now_ms()))
        for target in sorted(waiting):
            self._send_marker(shard, prepared, target, waiting)

    def _send_marker(
        self,
        shard: TransactionCoordinatorShard,
        prepared: SendMarkers,
        target: TopicPartition,
        waiting: set[TopicPartition],
    ) -> None:
        def written(error: ErrorCode) -> None:
            if error is ErrorCode.TRANSACTION_COORDINATOR_FENCED:
                return
            waiting.discard(target)
            if not waiting and shard is self.shard:
                self.take(shard, shard.complete(prepared, self._time.now_ms()))

        def again() -> None:
            if target in waiting and shard is self.shard:
                self._send_marker(shard, prepared, target, waiting)

        leader = self.partitions[target]
        # Where epochs stay, a marker that is overtaken by the next transaction would end that one: the first version
        # of the protocol relies on connections that keep their order, the second does not.
        in_order = not prepared.transaction.bumps_epochs
        self._network.send(lambda reply: leader.end(prepared, reply), written, in_order=in_order)
        self._time.call_later(0.3, again)


class Leader:
    """A partition that verifies: a real log, whose outcomes can be read back."""

    def __init__(self, time: VirtualTime, network: Network, coordinator: Coordinator, name: TopicPartition) -> None:
        self.log = reopen(SimulatedDisk())
        self.log.producers.verifies_transactions = True
        self._time = time
        self._network = network
        self._coordinator = coordinator
        self.name = name
        coordinator.partitions[name] = self

    def produce(self, transactional_id: str, producer: ProducerIdAndEpoch, sequence: int, value: bytes, adds: bool,
                reply: Reply) -> None:  # fmt: skip
        producers = self.log.producers
        if producers.has_open_transaction(*producer) or not producers.verifies_transactions:
            reply(self._append(producer, sequence, value))
            return
        verification = producers.begin_verification(*producer, sequence, supports_epoch_bump=adds)

        def verified(error: ErrorCode) -> None:
            if error is not ErrorCode.NONE:
                reply(error)
            elif producers.verified(verification):
                reply(self._append(producer, sequence, value))
            else:
                self.produce(transactional_id, producer, sequence, value, adds, reply)

        self._network.send(lambda answer: self._verify(transactional_id, producer, adds, answer), verified)

    def _verify(self, transactional_id: str, producer: ProducerIdAndEpoch, adds: bool, answer: Reply) -> None:
        def verify(shard: TransactionCoordinatorShard, now_ms: int) -> CoordinatorResult[Any, Any]:
            if adds:
                return shard.add_partitions(transactional_id, producer, [self.name], 2, now_ms)
            return CoordinatorResult(answer=shard.verify(transactional_id, producer, [self.name])[self.name])

        self._coordinator.ask(verify, lambda heard: answer(getattr(heard, "error", heard)))

    def _append(self, producer: ProducerIdAndEpoch, sequence: int, value: bytes) -> ErrorCode:
        written = batch(
            value,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=sequence,
            transactional=True,
        )
        return self._attempt(lambda: self.log.append_as_leader(written, 0, NOW_MS))

    def end(self, prepared: SendMarkers, reply: Reply) -> None:
        producer_id, epoch = prepared.transaction.identity
        ending = marker(producer_id, epoch, commit=prepared.is_commit, coordinator_epoch=prepared.coordinator_epoch)

        def write() -> object:
            if prepared.transaction.bumps_epochs:
                self.log.producers.check_bumped_marker(producer_id, epoch)
            return self.log.append_as_leader(ending, 0, NOW_MS, from_client=False)

        reply(self._attempt(write))

    def _attempt(self, write: Callable[[], object]) -> ErrorCode:
        try:
            write()
        except tuple(REFUSALS) as error:
            return REFUSALS[type(error)]
        return ErrorCode.NONE


class Timers:
    def __init__(self, time: VirtualTime, coordinator: Coordinator) -> None:
        self._time = time
        self._coordinator = coordinator

    def schedule(self, key: Hashable, delay_ms: int, due: Callable[[int], CoordinatorResult[Any, None]]) -> None:
        shard = getattr(due, "__self__", None)

        def fire() -> None:
            if shard is self._coordinator.shard:
                self._coordinator.take(shard, due(self._time.now_ms()))

        self._time.call_later(delay_ms / 1000, fire)

    def cancel(self, key: Hashable) -> None: ...

    def __contains__(self, key: Hashable) -> bool:
        raise NotImplementedError


class Told:
    def __init__(self, reply: Reply) -> None:
        self._reply = reply

    def answer(self, response: Any) -> None:
        self._reply(response)

    def refuse(self, error: ErrorCode, message: str = "") -> None:
        self._reply(error)
