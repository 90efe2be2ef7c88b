"""One seed: producers of both versions, with zombies, against a coordinator that crashes; then what the logs hold.

A producer numbers its transactions; every record names the one it was written in. What must hold at the end:

    nothing hangs       no partition has a transaction open once everything has settled
    no torn one         of a transaction, all records that were acknowledged are committed, or none is
    a promise is kept   what a producer was told is committed is committed; what it was told is aborted is not
    nothing twice       no record is committed more than once
"""

from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from logs import decided_end
from transaction_parts import Coordinator, Leader, Network
from virtual_time import VirtualTime

from sskafka.model.coordination import CoordinatorResult
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import ProducerIdAndEpoch, TopicPartition
from sskafka.records.batch import BatchHeader, iter_headers
from sskafka.records.control import ControlType, EndTransactionMarker
from sskafka.records.record import decode_records
from sskafka.storage.log import Log
from sskafka.storage.transactions.marker import read_marker
from sskafka.transactions.end_txn import EndTxn
from sskafka.transactions.init_producer_id import InitProducerId
from sskafka.transactions.shard import TransactionCoordinatorShard

PARTITIONS = [TopicPartition("orders", index) for index in range(3)]
BUSY_MS = 20_000
SETTLE_MS = 20_000
TIMEOUT_MS = 1_500
RETRY_S = 0.4
PASSING = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


class Run:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.time = VirtualTime()
        self.network = Network(self.time, self.random)
        self.coordinator = Coordinator(self.time, self.network, self.random)
        self.leaders = {name: Leader(self.time, self.network, self.coordinator, name) for name in PARTITIONS}
        self.acknowledged: dict[str, set[tuple[TopicPartition, bytes]]] = {}
        self.attempted: dict[str, set[tuple[TopicPartition, bytes]]] = {}
        self.outcomes: dict[str, bool] = {}
        self.is_over = False

    def play(self) -> "Run":
        for number in range(3):
            version = self.random.choice([0, 2])
            Producer(self, f"id-{number}", f"{number}a", version).start()
            if self.random.random() < 0.7:  # a second process with the same id: one of them becomes a zombie
                late = Producer(self, f"id-{number}", f"{number}b", version)
                self.time.call_later(self.random.uniform(1, 15), late.start)
        for _ in range(self.random.randrange(15)):
            self.time.call_later(self.random.uniform(0, BUSY_MS / 1000), self.coordinator.crash)
        self.time.run_for(BUSY_MS)
        self.is_over = self.network.is_calm = True
        self.time.run_for(SETTLE_MS)
        self.check()
        return self

    def check(self) -> None:
        for name, leader in self.leaders.items():
            open_since = decided_end(leader.log)
            assert open_since == leader.log.log_end_offset, (
                f"seed {self.seed}: a transaction hangs in {name} since offset {open_since}"
            )
        copies = Counter(self.committed_in_logs())
        assert not [record for record, count in copies.items() if count > 1], f"seed {self.seed}: committed twice"
        for transaction, records in self.acknowledged.items():
            there = records & copies.keys()
            assert there in (set(), records), f"seed {self.seed}: {transaction} is torn: {there} of {records}"
            promised = self.outcomes.get(transaction)
            if promised is True:
                assert there == records, f"seed {self.seed}: {transaction} was to be committed"
            if promised is False:
                late = self.attempted[transaction] & copies.keys()
                assert not late, f"seed {self.seed}: {transaction} was to be aborted, but {late} is committed"

    def committed_in_logs(self) -> list[tuple[TopicPartition, bytes]]:
        """Every data record whose transaction was ended by a commit marker."""
        committed: list[tuple[TopicPartition, bytes]] = []
        for name, leader in self.leaders.items():
            pending: dict[int, list[tuple[TopicPartition, bytes]]] = {}
            for header, ending, values in _batches(leader.log):
                if ending is None:
                    pending.setdefault(header.producer_id, []).extend((name, value) for value in values)
                    continue
                ended = pending.pop(header.producer_id, [])
                if ending.type == ControlType.COMMIT:
                    committed += ended
        return committed


def _batches(log: Log) -> Iterator[tuple[BatchHeader, EndTransactionMarker | None, list[bytes]]]:
    """Data batches with their values, control batches with their marker."""
    for part in log.read(0, 1 << 30, log.log_end_offset) if log.log_end_offset else ():
        data = memoryview(part.read())
        for position, header in iter_headers(data):
            if header.is_control:
                yield header, read_marker(data, header, position), []
            else:
                yield header, None, [record.value or b"" for record in decode_records(data, header, position)]


class Producer:
    """Writes one record a partition at a time, waits for it, and ends its transaction; starts over if the outcome is
    unknown."""

    def __init__(self, run: Run, transactional_id: str, name: str, version: int) -> None:
        self._run = run
        self._id = transactional_id
        self._name = name
        self._version = version
        self._identity = ProducerIdAndEpoch(-1, -1)
        self._sequences: Counter[TopicPartition] = Counter()
        self._number = 0
        self._step = 0
        self._relies_on_order = version == 0
        """Where epochs stay, an end that is overtaken by the next transaction would end that one."""

    def start(self) -> None:
        if not self._run.is_over:
            self._initialize(None)

    def _ask(self, operation: Any, then: Any, in_order: bool = False) -> None:
        """Repeated until something is heard; what comes to an earlier step is too late."""
        self._step += 1
        step = self._step

        def heard(response: Any) -> None:
            if self._step == step:
                self._step += 1
                then(response)

        def attempt() -> None:
            if self._step == step and not self._run.is_over:
                self._run.network.send(operation, heard, in_order=in_order)
                self._run.time.call_later(RETRY_S, attempt)

        attempt()

    def _initialize(self, last: ProducerIdAndEpoch | None) -> None:
        run = self._run
        asked = InitProducerId(self._id, TIMEOUT_MS, last or ProducerIdAndEpoch(-1, -1))

        def operation(reply: Any) -> None:
            def decide(shard: TransactionCoordinatorShard, now_ms: int) -> CoordinatorResult[Any, Any]:
                return shard.init_producer_id(asked, run.coordinator.new_producer_id(), now_ms)

            run.coordinator.ask(decide, reply)

        def initialized(verdict: Any) -> None:
            error = getattr(verdict, "error", verdict)
            if error is ErrorCode.NONE:
                self._adopt(verdict.identity)
                self._begin()
            elif error in PASSING:
                run.time.call_later(0.05, lambda: self._initialize(last))
            else:
                self._give_way()

        self._ask(operation, initialized)

    def _give_way(self) -> None:
        """This process is at its end; another takes its place before long."""
        heir = Producer(self._run, self._id, f"{self._name}+", self._version)
        self._run.time.call_later(self._run.random.uniform(0, 2), heir.start)

    def _adopt(self, identity: ProducerIdAndEpoch) -> None:
        if identity != self._identity:
            self._identity = identity
            self._sequences.clear()

    def _begin(self) -> None:
        if self._run.is_over:
            return
        self._number += 1
        self._transaction = f"{self._name}-{self._number}"
        self._run.acknowledged[self._transaction] = set()
        self._run.attempted[self._transaction] = set()
        chance = self._run.random
        self._left = [(chance.choice(PARTITIONS), b"%s-%d" % (self._transaction.encode(), n)) for n in range(4)]
        if chance.random() < 0.1:
            self._run.time.call_later(2 * TIMEOUT_MS / 1000, self._go_on)  # so slow that it is timed out
        else:
            self._go_on()

    def _go_on(self) -> None:
        if not self._left:
            self._end(commit=self._run.random.random() < 0.7)
        elif self._version == 0:
            self._add(*self._left.pop())
        else:
            self._write(*self._left.pop())

    def _add(self, partition: TopicPartition, value: bytes) -> None:
        def operation(reply: Any) -> None:
            self._run.coordinator.ask(
                lambda shard, now_ms: shard.add_partitions(self._id, identity, [partition], 0, now_ms), reply
            )

        def added(verdict: Any) -> None:
            error = getattr(verdict, "error", verdict)
            if error is ErrorCode.NONE:
                self._write(partition, value)
            elif error in PASSING:
                self._run.time.call_later(0.02, lambda: self._add(partition, value))
            else:
                self._failed()

        identity = self._identity
        self._ask(operation, added, self._relies_on_order)

    def _write(self, partition: TopicPartition, value: bytes) -> None:
        identity, sequence, adds = self._identity, self._sequences[partition], self._version == 2
        leader = self._run.leaders[partition]
        self._run.attempted[self._transaction].add((partition, value))

        def written(error: ErrorCode) -> None:
            if error is ErrorCode.NONE:
                self._sequences[partition] += 1
                self._run.acknowledged[self._transaction].add((partition, value))
                self._go_on()
            elif error in PASSING:
                self._run.time.call_later(0.02, lambda: self._write(partition, value))
            else:
                self._failed()

        def operation(reply: Any) -> None:
            leader.produce(self._id, identity, sequence, value, adds, reply)

        if self._run.random.random() < 0.05:  # too impatient to wait: whether it is written nobody will know
            self._run.network.send(operation, lambda _: None)
            self._end(commit=False, and_then=lambda: self._initialize(self._identity))
        else:
            self._ask(operation, written)

    def _failed(self) -> None:
        """After fencing, a timeout or an unknown outcome, initialize the id again, unless another producer has it."""
        self._run.outcomes.pop(self._transaction, None)
        self._initialize(self._identity)

    def _end(self, *, commit: bool, and_then: Callable[[], None] | None = None) -> None:
        transaction, asked = self._transaction, EndTxn(self._identity, commit, self._version)

        def operation(reply: Any) -> None:
            def decide(shard: TransactionCoordinatorShard, now_ms: int) -> CoordinatorResult[Any, Any]:
                return shard.end_txn(self._id, asked, self._run.coordinator.new_producer_id(), now_ms)

            self._run.coordinator.ask(decide, reply)

        def ended(verdict: Any) -> None:
            error = getattr(verdict, "error", verdict)
            if error is ErrorCode.NONE:
                self._run.outcomes[transaction] = commit
                self._adopt(verdict.identity)
                (and_then or self._begin)()
            elif error in PASSING:
                self._run.time.call_later(0.05, lambda: self._end(commit=commit, and_then=and_then))
            else:
                self._failed()

        if self._run.random.random() < 0.1:  # it dies, having asked once; another process takes its place
            self._run.network.send(operation, lambda _: None)
            self._give_way()
        else:
            self._ask(operation, ended, self._relies_on_order)


def run_seed(seed: int) -> Run:
    try:
        return Run(seed).play()
    except AssertionError as error:
        if f"seed {seed}" in str(error):
            raise
        raise AssertionError(f"seed {seed}: {error}") from error
