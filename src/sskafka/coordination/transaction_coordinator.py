"""The coordinator of the transactional ids whose partitions of `__transaction_state` this broker leads.

Wires the pure machine to its runtime, to the senders of markers and to whoever hands out producer ids. Requests come
from the handlers (`initialize`, `enrol`, `end`: awaited) and from the leaders of partitions (`answer_leader`).
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator
from typing import Any, Protocol

from sskafka.coordination.askers import FutureAsker
from sskafka.coordination.coordinator import Coordinator
from sskafka.coordination.internal_topics import TRANSACTION_STATE
from sskafka.coordination.shard import Place, ShardRuntime
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.features import TRANSACTION_VERSION
from sskafka.metadata.image import ClusterImage
from sskafka.model.coordination import Asker, Decision
from sskafka.model.counters import Sample
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.model.settings import Settings
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.transactions.counters import TransactionCounters
from sskafka.transactions.ending import Ending
from sskafka.transactions.initialization import Initialization
from sskafka.transactions.machine import Prepared, TransactionLimits, TransactionMachine
from sskafka.transactions.metadata import BUMPING_VERSION, ProducerIdentity, TransactionMetadata
from sskafka.transactions.states import TransactionState
from sskafka.transactions.verdict import FINAL_ERRORS, Verdict

_METRICS = "kafka_coordinator_transaction_"

NextProducerId = Callable[[], Awaitable[int]]
"""A producer id that nobody else will ever get."""
Verified = Callable[[dict[TopicPartition, ErrorCode]], None]


class SendsMarkers(Protocol):
    def send(self, machine: TransactionMachine, prepared: Prepared) -> None: ...


class TransactionCoordinator:
    sender: SendsMarkers
    """Set by whoever puts the parts together, before the first metadata comes."""

    def __init__(
        self,
        replicas: ReplicaManager,
        settings: Settings,
        runtime: ShardRuntime,
        image: Callable[[], ClusterImage],
        next_producer_id: NextProducerId,
    ) -> None:
        self._limits = TransactionLimits(
            settings["transaction.max.timeout.ms"],
            settings["transactional.id.expiration.ms"],
            settings["transaction.abort.timed.out.transaction.cleanup.interval.ms"],
            settings["transaction.remove.expired.transaction.cleanup.interval.ms"],
            settings["transaction.two.phase.commit.enable"],
        )
        self._image = image
        self._next_producer_id = next_producer_id
        self._counters = TransactionCounters()
        self._shards: Coordinator[TransactionMachine] = Coordinator(
            TRANSACTION_STATE, replicas, self._make_machine, runtime
        )

    def _make_machine(self, place: Place) -> TransactionMachine:
        return TransactionMachine(
            place.leader_epoch,
            place.timers,
            self._limits,
            lambda: self._image().features.get(TRANSACTION_VERSION, 0),
            self._send_markers,
            self._counters,
        )

    def _send_markers(self, machine: TransactionMachine, prepared: Prepared) -> None:
        self.sender.send(machine, prepared)

    def metadata_changed(self, delta: MetadataDelta, image: ClusterImage) -> None:
        self._shards.metadata_changed(delta, image)

    def stop(self) -> None:
        self._shards.stop()

    # -- what producers ask

    async def initialize(self, asked: Initialization) -> Verdict:
        return await self._with_spare_id(
            asked.transactional_id,
            lambda machine, spare_id, asker, now_ms: machine.initialize(asked, spare_id, asker, now_ms),
        )

    async def enrol(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: Collection[TopicPartition],
        client_version: int,
    ) -> Verdict:
        asker = FutureAsker()
        self._shards.change(
            transactional_id,
            lambda machine, now_ms: machine.enrol(
                transactional_id, producer, partitions, client_version, asker, now_ms
            ),
            asker,
        )
        verdict: Verdict = await asker.future
        return verdict

    async def end(self, transactional_id: str, asked: Ending) -> Verdict:
        return await self._with_spare_id(
            transactional_id,
            lambda machine, spare_id, asker, now_ms: machine.end(transactional_id, asked, spare_id, asker, now_ms),
        )

    async def _with_spare_id(
        self, transactional_id: str, operation: Callable[[TransactionMachine, int | None, Asker, int], Decision]
    ) -> Verdict:
        """New producer ids are seldom needed and come from the controller: first without, then with one."""
        spare_id: int | None = None
        while True:
            verdict = await self._asked(transactional_id, operation, spare_id)
            if not verdict.needs_producer_id:
                return verdict
            spare_id = await self._next_producer_id()

    async def _asked(
        self,
        transactional_id: str,
        operation: Callable[[TransactionMachine, int | None, Asker, int], Decision],
        spare_id: int | None,
    ) -> Verdict:
        asker = FutureAsker()
        self._shards.change(
            transactional_id, lambda machine, now_ms: operation(machine, spare_id, asker, now_ms), asker
        )
        verdict: Verdict = await asker.future
        return verdict

    # -- what leaders of partitions ask

    def answer_leader(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: Collection[TopicPartition],
        adds: bool,
        verified: Verified,
    ) -> None:
        if not transactional_id:
            verified(dict.fromkeys(partitions, ErrorCode.INVALID_REQUEST))
        elif adds and not self._knows(partitions):
            verified(dict.fromkeys(partitions, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        elif adds:
            asker = _ForLeader(partitions, verified)
            self._shards.change(
                transactional_id,
                lambda machine, now_ms: machine.enrol(
                    transactional_id, producer, partitions, BUMPING_VERSION, asker, now_ms
                ),
                asker,
            )
        else:
            self._verify(transactional_id, producer, partitions, verified)

    def _verify(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: Collection[TopicPartition],
        verified: Verified,
    ) -> None:
        """Final errors are confirmed by the log, see `TransactionMachine`; everything else needs no write."""

        def answered(outcome: dict[TopicPartition, ErrorCode]) -> None:
            if FINAL_ERRORS.isdisjoint(outcome.values()):
                verified(outcome)
                return
            asker = _ForLeader(partitions, verified)
            self._shards.change(
                transactional_id,
                lambda machine, _: machine.verify_surely(transactional_id, producer, partitions, asker),
                asker,
            )

        self._shards.read(
            transactional_id,
            lambda machine, _: machine.verify(transactional_id, producer, partitions),
            _ForLeader(partitions, answered),
        )

    def _knows(self, partitions: Collection[TopicPartition]) -> bool:
        """A leader may have heard of a topic first. What this broker does not know when the transaction ends is taken
        for deleted and gets no marker, so it must know what it takes on."""
        image = self._image()
        return all(image.partition(*item) is not None for item in partitions)

    # -- what the senders of markers say

    def completed(self, machine: TransactionMachine, prepared: Prepared) -> None:
        """Where it cannot be written, the next sweep, or the next coordinator, completes the transaction."""
        self._shards.change(
            prepared.transaction.transactional_id,
            lambda current, now_ms: current.complete(prepared, now_ms) if current is machine else Decision(),
            _Completing(machine, prepared),
        )

    # -- what administrators ask

    async def describe(self, transactional_id: str) -> TransactionMetadata:
        """Raises KafkaError when it is not known, or not here."""
        asker = FutureAsker()
        self._shards.read(transactional_id, lambda machine, _: machine.find(transactional_id), asker)
        known: TransactionMetadata | None = await asker.future
        if known is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return known

    def samples(self) -> Iterator[Sample]:
        """Names are ours where Kafka has no metric of the kind."""
        machines = [shard.machine for shard in self._shards.active_shards()]
        states = Counter(known.state for machine in machines for known in machine)
        for state in TransactionState:
            yield Sample(_METRICS + "transactions", (("state", state.label),), states[state])
        yield Sample(_METRICS + "markers_pending", (), sum(machine.markers_under_way for machine in machines))
        counters = self._counters
        yield Sample(_METRICS + "committed_total", (), counters.committed)
        yield Sample(_METRICS + "aborted_total", (), counters.aborted)
        yield Sample(_METRICS + "timedout_total", (), counters.timed_out)
        yield from self._shards.samples("kafka_server_transaction_coordinator_metrics_")

    @property
    def is_loading(self) -> bool:
        return self._shards.is_loading

    def __iter__(self) -> Iterator[TransactionMetadata]:
        for shard in self._shards.active_shards():
            yield from shard.machine


class _Completing:
    """Waits for no answer, but must know when nobody sends the markers any more."""

    __slots__ = ("_machine", "_prepared")

    def __init__(self, machine: TransactionMachine, prepared: Prepared) -> None:
        self._machine = machine
        self._prepared = prepared

    def answer(self, response: Any) -> None:
        pass

    def refuse(self, error: ErrorCode, message: str = "") -> None:
        self._machine.markers_failed(self._prepared)


class _ForLeader:
    """Who asked about partitions hears of each of them."""

    __slots__ = ("_partitions", "_verified")

    def __init__(self, partitions: Collection[TopicPartition], verified: Verified) -> None:
        self._partitions = partitions
        self._verified = verified

    def answer(self, response: Any) -> None:
        if isinstance(response, Verdict):
            response = dict.fromkeys(self._partitions, response.error)
        self._verified(response)

    def refuse(self, error: ErrorCode, message: str = "") -> None:
        self._verified(dict.fromkeys(self._partitions, error))
