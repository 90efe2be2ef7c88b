"""RemoveRaftVoter: remove a voter from the metadata quorum."""

from typing import ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import Int16, Int32, String, Uuid, message, request, response


@message
class RemoveRaftVoterRequest:
    SCHEMA: ClassVar = request(81)

    cluster_id: String | None = ""
    voter_id: Int32 = 0
    voter_directory_id: Uuid = ZERO_UUID


@message
class RemoveRaftVoterResponse:
    SCHEMA: ClassVar = response(81)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
