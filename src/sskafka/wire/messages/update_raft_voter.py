"""UpdateRaftVoter: a voter changes its endpoints or the protocol versions it supports."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import Int16, Int32, String, UInt16, Uuid, message, request, response, tagged


@message
class Listener:
    name: String = ""
    host: String = ""
    port: UInt16 = 0


@message
class KRaftVersionFeature:
    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


@message
class UpdateRaftVoterRequest:
    SCHEMA: ClassVar = request(82)

    cluster_id: String | None = ""
    current_leader_epoch: Int32 = 0
    voter_id: Int32 = 0
    voter_directory_id: Uuid = ZERO_UUID
    listeners: list[Listener] = field(default_factory=list)
    kraft_version_feature: KRaftVersionFeature = field(default_factory=KRaftVersionFeature)


@message
class CurrentLeader:
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1
    host: String = ""
    port: Int32 = 0


@message
class UpdateRaftVoterResponse:
    SCHEMA: ClassVar = response(82)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    current_leader: Annotated[CurrentLeader, tagged(0)] = field(default_factory=CurrentLeader)
