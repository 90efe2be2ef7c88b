"""BrokerHeartbeat: a broker reports that it is alive, and asks to be unfenced or to shut down."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.wire.schema import Bool, Int16, Int32, Int64, Uuid, ignorable, message, request, response, tagged


@message
class BrokerHeartbeatRequest:
    SCHEMA: ClassVar = request(63)

    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    current_metadata_offset: Int64 = 0
    want_fence: Bool = False
    want_shut_down: Bool = False
    offline_log_dirs: Annotated[list[Uuid], tagged(0, since=1)] = field(default_factory=list)
    cordoned_log_dirs: Annotated[list[Uuid] | None, tagged(1, since=2), ignorable] = None


@message
class BrokerHeartbeatResponse:
    SCHEMA: ClassVar = response(63)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    is_caught_up: Bool = False
    is_fenced: Bool = True
    should_shut_down: Bool = False
