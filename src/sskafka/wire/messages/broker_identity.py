"""BrokerIdentity, an SSKafka API: quorum voters ask which process answers at a broker's address."""

from typing import ClassVar

from sskafka.wire.schema import Int16, Int32, String, Uuid, message, request, response


@message
class BrokerIdentityRequest:
    SCHEMA: ClassVar = request(20010)


@message
class BrokerIdentityResponse:
    SCHEMA: ClassVar = response(20010)

    error_code: Int16 = 0
    cluster_id: String = ""
    broker_id: Int32 = -1
    incarnation_id: Uuid = bytes(16)
    """The incarnation id of the broker's registration, which is new for every process."""
