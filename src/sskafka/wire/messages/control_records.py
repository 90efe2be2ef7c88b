"""Values of the control records that the quorum and transactions write to logs."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.apis import NEVER
from sskafka.wire.schema import Int16, Int32, Int64, String, UInt16, Uuid, data, message, since


@message
class LeaderChangeMessageVoter:
    voter_id: Int32 = 0
    voter_directory_id: Annotated[Uuid, since(1)] = ZERO_UUID


@message
class LeaderChangeMessage:
    SCHEMA: ClassVar = data(versions=(0, 1), flexible_from=0)

    version: Int16 = 0
    leader_id: Int32 = 0
    voters: list[LeaderChangeMessageVoter] = field(default_factory=list)
    granting_voters: list[LeaderChangeMessageVoter] = field(default_factory=list)


@message
class SnapshotHeaderRecord:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0)

    version: Int16 = 0
    last_contained_log_timestamp: Int64 = 0


@message
class SnapshotFooterRecord:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0)

    version: Int16 = 0


@message
class KRaftVersionRecord:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0)

    version: Int16 = 0
    kraft_version: Int16 = 0


@message
class Endpoint:
    name: String = ""
    host: String = ""
    port: UInt16 = 0


@message
class KRaftVersionFeature:
    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


@message
class VotersRecordVoter:
    voter_id: Int32 = 0
    voter_directory_id: Uuid = ZERO_UUID
    endpoints: list[Endpoint] = field(default_factory=list)
    kraft_version_feature: KRaftVersionFeature = field(default_factory=KRaftVersionFeature)


@message
class VotersRecord:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0)

    version: Int16 = 0
    voters: list[VotersRecordVoter] = field(default_factory=list)


@message
class EndTxnMarker:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=NEVER)

    coordinator_epoch: Int32 = 0
