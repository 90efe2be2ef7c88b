"""Build and read the control records of the metadata log and of snapshots.

LeaderChange                  the first record of every epoch: the leader and the voters
KRaftVersion, KRaftVoters     the quorum's format and its voters, if the voters can change (kraft.version 1)
SnapshotHeader, Footer        around the records of a snapshot
"""

from sskafka.model.values import structure
from sskafka.raft.ready import LeaderChange
from sskafka.records.builder import NewRecord, build_batch
from sskafka.records.control import ControlType, control_key, read_control_type
from sskafka.records.record import Record
from sskafka.wire.codec import decode, encode
from sskafka.wire.messages.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeMessageVoter,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from sskafka.wire.schema import Message

_TYPE_OF: dict[type[Message], ControlType] = {
    LeaderChangeMessage: ControlType.LEADER_CHANGE,
    SnapshotHeaderRecord: ControlType.SNAPSHOT_HEADER,
    SnapshotFooterRecord: ControlType.SNAPSHOT_FOOTER,
    KRaftVersionRecord: ControlType.KRAFT_VERSION,
    VotersRecord: ControlType.KRAFT_VOTERS,
}


@structure
class QuorumSetup:
    """The voters and the format of the quorum, according to the control records so far."""

    kraft_version: int = 0
    voters: VotersRecord | None = None
    """None: the voters are those of controller.quorum.voters."""
    is_in_log: bool = False
    """False while only a snapshot, and not the log, has these records."""

    def records(self) -> list[Message]:
        """Return the control records for a snapshot, or for a log that does not have them yet."""
        return [] if self.voters is None else [KRaftVersionRecord(0, self.kraft_version), self.voters]

    def replay(self, record: Record, *, from_log: bool) -> None:
        control_type = read_control_type(record.key)
        if control_type == ControlType.KRAFT_VERSION:
            self.kraft_version = decode(KRaftVersionRecord, 0, record.value or b"").kraft_version
            self.is_in_log = from_log
        elif control_type == ControlType.KRAFT_VOTERS:
            self.voters = decode(VotersRecord, 0, record.value or b"")
            self.is_in_log = from_log


def control_batch(messages: list[Message], *, now_ms: int, base_offset: int = 0, leader_epoch: int = 0) -> bytearray:
    records = [_control_record(message, now_ms) for message in messages]
    return build_batch(records, base_offset=base_offset, leader_epoch=leader_epoch, control=True)


def leader_change(change: LeaderChange) -> Message:
    """Return the record in version 0, in which Kafka reads it independent of the quorum's format."""
    voters = [LeaderChangeMessageVoter(voter) for voter in change.voters]
    granting = [LeaderChangeMessageVoter(voter) for voter in change.granting_voters]
    return LeaderChangeMessage(0, change.leader_id, voters, granting)


def _control_record(message: Message, now_ms: int) -> NewRecord:
    return NewRecord(control_key(_TYPE_OF[type(message)]), encode(message, 0), timestamp=now_ms)
