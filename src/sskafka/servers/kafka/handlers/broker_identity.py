"""BrokerIdentity: tell voters of the quorum which incarnation of this broker they are connected to."""

from sskafka.model.ids import Uuid
from sskafka.servers.kafka.request import Request
from sskafka.wire.messages.broker_identity import BrokerIdentityRequest, BrokerIdentityResponse


class BrokerIdentityHandler:
    def __init__(self, cluster_id: str, broker_id: int, incarnation_id: Uuid) -> None:
        self._identity = BrokerIdentityResponse(
            cluster_id=cluster_id, broker_id=broker_id, incarnation_id=incarnation_id
        )

    def identity(self, message: BrokerIdentityRequest, request: Request) -> BrokerIdentityResponse:
        return self._identity
