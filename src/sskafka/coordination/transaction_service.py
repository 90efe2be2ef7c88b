"""Everything about transactions on one broker, put together: who coordinates, who writes markers, who verifies.

                 AddPartitions, EndTxn, ...            Produce, TxnOffsetCommit
                          |                                   |
__transaction_state -> coordinator <--- local or remote --- verifier
                          | prepared
                       sender --- local or WriteTxnMarkers --> writer -> partitions led here, coordinator of groups
"""

from collections.abc import Callable
from typing import NamedTuple

from sskafka.client.broker_link import BrokerLinks, CallLater, Link
from sskafka.coordination.context import CoordinatorEnvironment
from sskafka.coordination.transaction_coordinator import NextProducerId, TransactionCoordinator
from sskafka.coordination.transaction_markers import GroupTransactions, MarkerSender, MarkerWriter
from sskafka.coordination.transaction_verifier import TransactionVerifier
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.model.errors import ErrorCode
from sskafka.model.settings import Settings
from sskafka.replication.replica_manager import ReplicaManager


class TransactionService(NamedTuple):
    coordinator: TransactionCoordinator
    writer: MarkerWriter
    verifier: TransactionVerifier
    links: BrokerLinks[Link]

    def metadata_changed(self, delta: MetadataDelta, image: ClusterImage) -> None:
        self.coordinator.metadata_changed(delta, image)

    def stop(self) -> None:
        self.coordinator.stop()
        self.links.close()


class TransactionPorts(NamedTuple):
    """What the rest of the broker lends."""

    image: Callable[[], ClusterImage]
    next_producer_id: NextProducerId
    code_of: Callable[[Exception], ErrorCode]
    """The protocol's code for what the layers below raise."""


def transaction_service(
    replicas: ReplicaManager,
    groups: GroupTransactions,
    settings: Settings,
    environment: CoordinatorEnvironment,
    links: BrokerLinks[Link],
    call_later: CallLater,
    ports: TransactionPorts,
) -> TransactionService:
    image = ports.image
    writer = MarkerWriter(replicas, groups, environment.clock, environment.wheel, ports.code_of)
    sender = MarkerSender(replicas.broker_id, image, writer, links, call_later, environment.wheel)
    coordinator = TransactionCoordinator(replicas, settings, environment, image, ports.next_producer_id, sender)
    verifier = TransactionVerifier(replicas.broker_id, image, coordinator, links, call_later)
    return TransactionService(coordinator, writer, verifier, links)
