"""AddRaftVoter: add a voter to the metadata quorum."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import Bool, Int16, Int32, String, UInt16, Uuid, message, request, response, since


@message
class Listener:
    name: String = ""
    host: String = ""
    port: UInt16 = 0


@message
class AddRaftVoterRequest:
    SCHEMA: ClassVar = request(80)

    cluster_id: String | None = ""
    timeout_ms: Int32 = 0
    voter_id: Int32 = 0
    voter_directory_id: Uuid = ZERO_UUID
    listeners: list[Listener] = field(default_factory=list)
    ack_when_committed: Annotated[Bool, since(1)] = True


@message
class AddRaftVoterResponse:
    SCHEMA: ClassVar = response(80)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
