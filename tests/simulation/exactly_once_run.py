"""One seed: transactional producers at work while brokers crash, leaders move and messages are late or lost; then calm.

not refused        a producer that did nothing wrong hears no error that it cannot retry
nothing hangs      in the end no transaction is open, no offset pending, no transactional id is in between
all or nothing     of a transaction, every record and its offset count, or none does
a promise is kept  what a producer was told is committed is committed; what it was told is aborted is not
nothing twice      no record is committed more than once
"""

import asyncio
from collections import Counter
from random import Random

from exactly_once_clients import (
    CONSUMED,
    FIRST,
    SECOND,
    Died,
    History,
    Producer,
    Refused,
    Transaction,
    Versions,
)
from exactly_once_cluster import BROKERS, OFFSETS, ORDERS, PARTITIONS, STATE, Cluster, Weather
from logs import decided_end
from virtual_loop import LoopClock, run_virtually

from sskafka.coordination.internal_topics import partition_of
from sskafka.model.ids import TopicPartition
from sskafka.records.batch import iter_headers
from sskafka.records.builder import NewRecord, build_batch
from sskafka.records.control import ControlType
from sskafka.records.record import decode_records
from sskafka.storage.log import Log
from sskafka.storage.transactions.marker import read_marker
from sskafka.transactions.log_records import encode_key, encode_value
from sskafka.transactions.metadata import LAST_USABLE_EPOCH, NO_PRODUCER_ID, TransactionMetadata, TransactionState

BUSY_S = 1.5
SETTLE_S = 4.0
FINISH_S = 30.0
IDS = ("a", "b", "c")


class Run:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(f"exactly once {seed}")
        self.histories = {name: History(name) for name in IDS}
        self.versions = {name: self.random.choice((FIRST, SECOND, SECOND)) for name in IDS}
        self.is_over = False
        self.exhausted_ids = 0
        """Transactional ids whose producer id has run out of epochs."""
        self.cluster: Cluster

    async def play(self) -> "Run":
        asyncio.get_running_loop().set_exception_handler(lambda _, context: self._failed_call(context))
        # Where epochs stay, what arrives after its sender has given it up cannot be told from the next transaction's.
        only_second = all(versions is SECOND for versions in self.versions.values())
        self.cluster = cluster = Cluster(Weather(self.random, is_late=only_second))
        for topic in (STATE, ORDERS) if self.random.random() < 0.5 else (STATE, ORDERS, OFFSETS):
            cluster.create_topic(topic)
        self._age_ids()
        await asyncio.sleep(0.2)
        producers = [asyncio.ensure_future(self._generations(name)) for name in IDS]
        producers += [asyncio.ensure_future(self._successor(name)) for name in IDS if self.random.random() < 0.3]
        trouble = asyncio.ensure_future(self._make_trouble())
        await asyncio.sleep(BUSY_S)
        self._calm_down(trouble)
        done, stuck = await asyncio.wait(producers, timeout=FINISH_S)
        for task in done:
            task.result()
        assert not stuck, f"{len(stuck)} producers get nowhere, brokers failed with {cluster.errors!r}"
        for name in IDS:  # takes over what dead producers left, as a restarted process would
            await Producer(cluster, self.histories[name], self.versions[name], self.random).initialize()
        await asyncio.sleep(SETTLE_S)
        for error in cluster.errors:
            raise AssertionError(f"a broker failed: {error!r}") from error
        self.check()
        for broker in cluster.brokers.values():
            broker.stop()
        return self

    def _failed_call(self, context: dict[str, object]) -> None:
        error = context.get("exception")
        self.cluster.errors.append(error if isinstance(error, BaseException) else AssertionError(str(context)))

    def _age_ids(self) -> None:
        """Some ids are about to run out of epochs."""
        for name in IDS:
            if self.random.random() < 0.4:
                epoch = LAST_USABLE_EPOCH - self.random.randrange(8)
                state = TransactionState.COMPLETE_COMMIT
                aged = TransactionMetadata(name, ord(name), epoch, 60_000, state, last_update_ms=LoopClock().now_ms())
                shared = self.cluster.shared[TopicPartition(STATE, partition_of(name, PARTITIONS[STATE]))]
                record = NewRecord(encode_key(name), encode_value(aged, 1), (), LoopClock().now_ms())
                shared.log.append_as_leader(build_batch([record]), 0, LoopClock().now_ms())
                shared.high_watermark = shared.log.log_end_offset

    # -- producers

    async def _generations(self, name: str) -> None:
        """One process after the other: the next begins when one has died."""
        while not self.is_over:
            try:
                await self._producer(name).live(lambda: self.is_over)
            except (Died, Refused):
                await asyncio.sleep(self.random.uniform(0, 0.3))

    async def _successor(self, name: str) -> None:
        """A second process of the same id: the first becomes a zombie, which must not disturb this one."""
        await asyncio.sleep(self.random.uniform(0, BUSY_S))
        try:
            await self._producer(name).live(lambda: self.is_over)
        except (Died, Refused):
            return

    def _producer(self, name: str) -> Producer:
        return Producer(self.cluster, self.histories[name], self._versions_of(name), self.random)

    def _versions_of(self, name: str) -> Versions:
        return self.versions[name]

    # -- trouble

    async def _make_trouble(self) -> None:
        random, cluster = self.random, self.cluster
        gap_s = random.choice((0.1, 0.3, 1.0))
        while True:
            await asyncio.sleep(random.uniform(0, gap_s))
            match random.randrange(4):
                case 0:
                    broker_id = random.choice(BROKERS)
                    cluster.crash(broker_id)
                    asyncio.get_running_loop().call_later(random.uniform(0.1, 0.6), cluster.start, broker_id)
                case 1 | 2:
                    cluster.move(random.choice(sorted(cluster.shared)))
                case _:
                    shared = cluster.shared[random.choice(sorted(cluster.shared))]
                    shared.is_writable = False
                    asyncio.get_running_loop().call_later(random.uniform(0, 0.3), setattr, shared, "is_writable", True)

    def _calm_down(self, trouble: "asyncio.Future[None]") -> None:
        trouble.cancel()
        self.is_over = self.cluster.weather.is_calm = True
        for broker_id in BROKERS:
            self.cluster.start(broker_id)

    # -- afterwards

    def check(self) -> None:
        self._check_nothing_hangs()
        copies = Counter(self._committed_records())
        assert not [record for record, count in copies.items() if count > 1], "a record is committed twice"
        for history in self.histories.values():
            for transaction in history.transactions:
                self._check_records(transaction, set(copies))
            self._check_offset(history, set(copies))

    def _check_nothing_hangs(self) -> None:
        for name in self.cluster.shared:
            replica = self.cluster.current(name)
            open_since = decided_end(replica.log)
            assert open_since == replica.log.log_end_offset, f"a transaction hangs in {name} since offset {open_since}"
            assert replica.high_watermark == replica.log.log_end_offset, f"{name} is not committed"
        for broker in self.cluster.brokers.values():
            for known in broker.coordinator:
                assert known.state.is_idle, f"{known.transactional_id} hangs: it is {known.state.label}"
                self.exhausted_ids += known.previous_producer_id != NO_PRODUCER_ID
            for context in broker.groups.runtime.active_contexts():
                for name in IDS:
                    pending = context.shard.offsets.pending_partitions(name)
                    assert not pending, f"an offset of {name} hangs"

    def _committed_records(self) -> list[tuple[TopicPartition, bytes]]:
        committed: list[tuple[TopicPartition, bytes]] = []
        for index in range(PARTITIONS[ORDERS]):
            name = TopicPartition(ORDERS, index)
            committed += [(name, value) for value in _committed_values(self.cluster.current(name).log)]
        return committed

    def _check_records(self, transaction: Transaction, committed: set[tuple[TopicPartition, bytes]]) -> None:
        there = transaction.attempted & committed
        if transaction.outcome is True:
            missing = transaction.acknowledged - there
            assert not missing, f"{transaction.name} was to be committed: {missing} is missing"
        elif transaction.outcome is False:
            assert not there, f"{transaction.name} was to be aborted: {there} is committed"
        elif there:
            assert there >= transaction.acknowledged, f"{transaction.name} is torn: {there}"

    def _check_offset(self, history: History, committed: set[tuple[TopicPartition, bytes]]) -> None:
        """Of the newest transaction that counts, as far as that can be known."""
        found = self._committed_offset(history.transactional_id)
        known = [item.number for item in history.transactions if item.has_offset and item.outcome is True]
        assert found >= max(known, default=0), f"offset {found} of {history.transactional_id} instead of {known[-1]}"
        if not found:
            return
        transaction = history.transactions[found - 1]
        assert transaction.outcome is not False, f"the offset of {transaction.name}, which was aborted, counts"
        missing = transaction.acknowledged - committed
        assert not missing, f"{transaction.name} is torn: its offset counts, {missing} does not"

    def _committed_offset(self, group_id: str) -> int:
        partition = partition_of(group_id, PARTITIONS[OFFSETS])
        leader = self.cluster.brokers.get(self.cluster.leader_of(TopicPartition(OFFSETS, partition)))
        if leader is None:
            return 0
        offset = leader.groups.runtime.contexts[partition].shard.offsets.committed(group_id).get(CONSUMED)
        return 0 if offset is None else offset.offset


def _committed_values(log: Log) -> list[bytes]:
    """Of every data record whose transaction was ended by a commit marker."""
    committed: list[bytes] = []
    pending: dict[int, list[bytes]] = {}
    for part in log.read(0, 1 << 30, log.log_end_offset) if log.log_end_offset else ():
        data = memoryview(part.read())
        for position, header in iter_headers(data):
            if not header.is_control:
                values = [record.value or b"" for record in decode_records(data, header, position)]
                pending.setdefault(header.producer_id, []).extend(values)
                continue
            marker = read_marker(data, header, position)
            ended = pending.pop(header.producer_id, [])
            if marker is not None and marker.type == ControlType.COMMIT:
                committed += ended
    return committed


def run_seed(seed: int) -> Run:
    run = Run(seed)
    try:
        return run_virtually(run.play())
    except BaseException as error:
        error.add_note(f"seed {seed}")
        raise
