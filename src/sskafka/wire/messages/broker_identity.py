"""BrokerIdentity, an API of our own: which process answers at a broker's address, asked by the voters of the quorum."""

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
    """New for every start of a broker's process; the one that it registers with."""
