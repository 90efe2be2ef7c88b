"""The coordinator of the transactional ids whose partitions of `__transaction_state` this broker leads.

It connects the pure shards with their runtime, with the sender of markers and with the source of producer ids. Requests
come from the handlers (`init_producer_id`, `add_partitions`, `end_txn`: awaited) and from the leaders of partitions
(`answer_leader`).
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator
from typing import Any

from sskafka.coordination.completions import FutureCompletion
from sskafka.coordination.context import CoordinatorEnvironment, Operation, ShardParameters
from sskafka.coordination.internal_topics import TRANSACTION_STATE
from sskafka.coordination.runtime import CoordinatorRuntime
from sskafka.coordination.transaction_markers import MarkerSender
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.features import TRANSACTION_VERSION
from sskafka.metadata.image import ClusterImage
from sskafka.model.coordination import CallbackCompletion
from sskafka.model.counters import Sample
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import ProducerIdAndEpoch, TopicPartition
from sskafka.model.settings import Settings
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.transactions.end_txn import EndTxn
from sskafka.transactions.init_producer_id import InitProducerId
from sskafka.transactions.metadata import (
    BUMPING_VERSION,
    FINAL_ERRORS,
    TransactionMetadata,
    TransactionResult,
    TransactionState,
)
from sskafka.transactions.shard import SendMarkers, TransactionCoordinatorShard, TransactionLimits, TransactionOutcome

_METRICS = "kafka_coordinator_transaction_"
COMPLETION_RETRY_MS = 200

NextProducerId = Callable[[], Awaitable[int]]
"""Returns an unused producer id."""
Verified = Callable[[dict[TopicPartition, ErrorCode]], None]


class TransactionCoordinator:
    def __init__(
        self,
        replicas: ReplicaManager,
        settings: Settings,
        environment: CoordinatorEnvironment,
        image: Callable[[], ClusterImage],
        next_producer_id: NextProducerId,
        sender: MarkerSender,
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
        self._sender = sender
        self._environment = environment
        self._completing: dict[str, SendMarkers] = {}
        """By transactional id: transactions whose markers are all written, but whose COMPLETE state is not."""
        self._outcomes: Counter[TransactionOutcome] = Counter()
        self._runtime: CoordinatorRuntime[TransactionCoordinatorShard] = CoordinatorRuntime(
            TRANSACTION_STATE, replicas, self._make_shard, environment, self._perform
        )

    def _make_shard(self, parameters: ShardParameters) -> TransactionCoordinatorShard:
        return TransactionCoordinatorShard(
            parameters.leader_epoch,
            parameters.timers,
            self._limits,
            lambda: self._image().features.get(TRANSACTION_VERSION, 0),
        )

    def metadata_changed(self, delta: MetadataDelta, image: ClusterImage) -> None:
        self._runtime.metadata_changed(delta, image)

    def stop(self) -> None:
        self._runtime.stop()

    # -- effects

    def _perform(self, effect: object) -> None:
        match effect:
            case SendMarkers():
                self._send_markers(effect)
            case TransactionOutcome():
                self._outcomes[effect] += 1

    def _send_markers(self, markers: SendMarkers) -> None:
        """Send markers, unless all partitions have them and only the COMPLETE state is missing."""
        if self._completing.get(markers.transaction.transactional_id) != markers:
            self._sender.send(markers, lambda: self._is_in_charge(markers), self._complete)

    def _is_in_charge(self, markers: SendMarkers) -> bool:
        return self._runtime.is_coordinator(markers.transaction.transactional_id, markers.coordinator_epoch)

    def _complete(self, sent: SendMarkers) -> None:
        self._completing[sent.transaction.transactional_id] = sent
        self._try_to_complete(sent)

    def _try_to_complete(self, sent: SendMarkers) -> None:
        """Write the COMPLETE state. Retry while the partition cannot be written (min.insync.replicas)."""
        transactional_id = sent.transaction.transactional_id
        if self._completing.get(transactional_id) is not sent:
            return
        if self._is_in_charge(sent):
            completion = CallbackCompletion(lambda _: self._completed(sent), lambda *_: self._complete_later(sent))
            self._runtime.write(transactional_id, lambda shard, now_ms: shard.complete(sent, now_ms), completion)
        else:
            self._completed(sent)  # the next coordinator sends the markers again

    def _complete_later(self, sent: SendMarkers) -> None:
        self._environment.wheel.schedule(COMPLETION_RETRY_MS, lambda: self._try_to_complete(sent))

    def _completed(self, sent: SendMarkers) -> None:
        if self._completing.get(sent.transaction.transactional_id) is sent:
            del self._completing[sent.transaction.transactional_id]

    # -- requests of producers

    async def init_producer_id(self, requested: InitProducerId) -> TransactionResult:
        return await self._retry_with_producer_id(
            requested.transactional_id,
            lambda spare_id: lambda shard, now_ms: shard.init_producer_id(requested, spare_id, now_ms),
        )

    async def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        client_version: int,
    ) -> TransactionResult:
        return await self._write(
            transactional_id,
            lambda shard, now_ms: shard.add_partitions(transactional_id, producer, partitions, client_version, now_ms),
        )

    async def end_txn(self, transactional_id: str, requested: EndTxn) -> TransactionResult:
        return await self._retry_with_producer_id(
            transactional_id,
            lambda spare_id: lambda shard, now_ms: shard.end_txn(transactional_id, requested, spare_id, now_ms),
        )

    async def _retry_with_producer_id(
        self, transactional_id: str, operation: Callable[[int | None], Operation[TransactionCoordinatorShard]]
    ) -> TransactionResult:
        """Try without a new producer id first: one is seldom needed, and the controller allocates it."""
        verdict = await self._write(transactional_id, operation(None))
        while verdict.needs_producer_id:
            verdict = await self._write(transactional_id, operation(await self._next_producer_id()))
        return verdict

    async def _write(
        self, transactional_id: str, operation: Operation[TransactionCoordinatorShard]
    ) -> TransactionResult:
        completion = FutureCompletion()
        self._runtime.write(transactional_id, operation, completion)
        verdict: TransactionResult = await completion.future
        return verdict

    # -- requests of the leaders of partitions

    def answer_leader(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        adds: bool,
        verified: Verified,
    ) -> None:
        if not transactional_id:
            verified(dict.fromkeys(partitions, ErrorCode.INVALID_REQUEST))
        elif adds and not self._knows_partitions(partitions):
            verified(dict.fromkeys(partitions, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        elif adds:
            self._runtime.write(
                transactional_id,
                lambda shard, now_ms: shard.add_partitions(
                    transactional_id, producer, partitions, BUMPING_VERSION, now_ms
                ),
                _for_leader(partitions, verified),
            )
        else:
            self._verify(transactional_id, producer, partitions, verified)

    def _verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        verified: Verified,
    ) -> None:
        """Verify partitions. Final errors must be confirmed by the log, see `TransactionCoordinatorShard`."""

        def answered(outcome: dict[TopicPartition, ErrorCode]) -> None:
            if FINAL_ERRORS.isdisjoint(outcome.values()):
                verified(outcome)
                return
            self._runtime.write(
                transactional_id,
                lambda shard, _: shard.verify_with_confirmation(transactional_id, producer, partitions),
                _for_leader(partitions, verified),
            )

        self._runtime.read(
            transactional_id,
            lambda shard, _: shard.verify(transactional_id, producer, partitions),
            _for_leader(partitions, answered),
        )

    def _knows_partitions(self, partitions: Collection[TopicPartition]) -> bool:
        """Return whether this broker knows the partitions. A leader may have heard of a new topic first, but a
        partition that the coordinator does not know counts as deleted when the transaction ends, and gets no marker."""
        image = self._image()
        return all(image.partition(*item) is not None for item in partitions)

    # -- requests of administrators

    async def describe(self, transactional_id: str) -> TransactionMetadata:
        """Return the state of an id. Raise KafkaError if the id is unknown or has another coordinator."""
        completion = FutureCompletion()
        self._runtime.read(transactional_id, lambda shard, _: shard.find(transactional_id), completion)
        known: TransactionMetadata | None = await completion.future
        if known is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return known

    def samples(self) -> Iterator[Sample]:
        """Yield metrics. Those that Kafka does not have, have names of our own."""
        states = Counter(known.state for known in self)
        for state in TransactionState:
            yield Sample(_METRICS + "transactions", (("state", state.label),), states[state])
        yield Sample(_METRICS + "markers_pending", (), self._sender.under_way_count)
        for outcome in TransactionOutcome:
            yield Sample(f"{_METRICS}{outcome}_total", (), self._outcomes[outcome])
        yield from self._runtime.samples("kafka_server_transaction_coordinator_metrics_")

    @property
    def is_loading(self) -> bool:
        return self._runtime.is_loading

    def __iter__(self) -> Iterator[TransactionMetadata]:
        for context in self._runtime.active_contexts():
            yield from context.shard


def _for_leader(partitions: Collection[TopicPartition], verified: Verified) -> CallbackCompletion:
    """Return a completion that passes the result to the leader that asked: an error code for each partition."""

    def answered(response: Any) -> None:
        if isinstance(response, TransactionResult):
            response = dict.fromkeys(partitions, response.error)
        verified(response)

    return CallbackCompletion(answered, lambda error, _: verified(dict.fromkeys(partitions, error)))
