"""The values of control records: what the quorum and transactions write between the data of a log."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.schema import NEVER, Int16, Int32, Int64, String, UInt16, Uuid, data, since


@dataclass(slots=True)
class LeaderChangeMessageVoter:
    voter_id: Int32 = 0
    voter_directory_id: Annotated[Uuid, since(1)] = ZERO_UUID


@dataclass(slots=True)
class LeaderChangeMessage:
    SCHEMA: ClassVar = data(versions=(0, 1), flexible_from=0)

    version: Int16 = 0
    leader_id: Int32 = 0
    voters: list[LeaderChangeMessageVoter] = field(default_factory=list)
    granting_voters: list[LeaderChangeMessageVoter] = field(default_factory=list)


@dataclass(slots=True)
class SnapshotHeaderRecord:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0)

    version: Int16 = 0
    last_contained_log_timestamp: Int64 = 0


@dataclass(slots=True)
class SnapshotFooterRecord:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0)

    version: Int16 = 0


@dataclass(slots=True)
class KRaftVersionRecord:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0)

    version: Int16 = 0
    kraft_version: Int16 = 0


@dataclass(slots=True)
class Endpoint:
    name: String = ""
    host: String = ""
    port: UInt16 = 0


@dataclass(slots=True)
class KRaftVersionFeature:
    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


@dataclass(slots=True)
class VotersRecordVoter:
    voter_id: Int32 = 0
    voter_directory_id: Uuid = ZERO_UUID
    endpoints: list[Endpoint] = field(default_factory=list)
    kraft_version_feature: KRaftVersionFeature = field(default_factory=KRaftVersionFeature)


@dataclass(slots=True)
class VotersRecord:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0)

    version: Int16 = 0
    voters: list[VotersRecordVoter] = field(default_factory=list)


@dataclass(slots=True)
class EndTxnMarker:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=NEVER)

    coordinator_epoch: Int32 = 0
