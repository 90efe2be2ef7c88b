"""The elections of the quorum that the metadata log still has: the first record of each epoch names its leader."""

from typing import NamedTuple

from sskafka.quorum.metadata_log import MetadataLog
from sskafka.quorum.snapshots import stored_records
from sskafka.records.control import ControlType, read_control_type
from sskafka.wire.codec import decode
from sskafka.wire.messages.control_records import LeaderChangeMessage

_ONE_BATCH_BYTES = 1


class QuorumElection(NamedTuple):
    leader_epoch: int
    leader_id: int
    time_ms: int
    """When the new leader wrote its first record."""
    granting_voters: tuple[int, ...]


def last_elections(log: MetadataLog, count: int) -> list[QuorumElection]:
    """Return the last elections, newest first. A snapshot replaces the records of older ones."""
    starts = [offset for _, offset in log.log.epochs.entries if log.start_offset <= offset < log.end_offset]
    found = (_election_at(log, offset) for offset in reversed(starts[-count:]))
    return [election for election in found if election is not None]


def _election_at(log: MetadataLog, offset: int) -> QuorumElection | None:
    first = next(iter(stored_records(log.read(offset, _ONE_BATCH_BYTES))), None)
    if first is None or not first.is_control or read_control_type(first.record.key) != ControlType.LEADER_CHANGE:
        return None
    change = decode(LeaderChangeMessage, 0, first.record.value or b"")
    voters = tuple(voter.voter_id for voter in change.granting_voters)
    return QuorumElection(first.batch.leader_epoch, change.leader_id, first.record.timestamp, voters)
