"""UpdateRaftVoter: a voter changes its endpoints or the protocol versions it supports."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import Int16, Int32, String, UInt16, Uuid, request, response, tagged


@dataclass(slots=True)
class Listener:
    name: String = ""
    host: String = ""
    port: UInt16 = 0


@dataclass(slots=True)
class KRaftVersionFeature:
    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


@dataclass(slots=True)
class UpdateRaftVoterRequest:
    SCHEMA: ClassVar = request(82, versions=(0, 0), flexible_from=0)

    cluster_id: String | None = ""
    current_leader_epoch: Int32 = 0
    voter_id: Int32 = 0
    voter_directory_id: Uuid = ZERO_UUID
    listeners: list[Listener] = field(default_factory=list)
    kraft_version_feature: KRaftVersionFeature = field(default_factory=KRaftVersionFeature)


@dataclass(slots=True)
class CurrentLeader:
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1
    host: String = ""
    port: Int32 = 0


@dataclass(slots=True)
class UpdateRaftVoterResponse:
    SCHEMA: ClassVar = response(82, versions=(0, 0), flexible_from=0)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    current_leader: Annotated[CurrentLeader, tagged(0)] = field(default_factory=CurrentLeader)
