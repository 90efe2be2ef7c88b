"""The metadata log on this node's disk: batches, snapshots and quorum-state, as the Raft core and its driver see them.

    __cluster_metadata-0/   00000000000000000000.log ...                 the log
                            00000000000000004711-0000000003.checkpoint   a snapshot of all records before that offset
                            quorum-state                                 epoch, leader and vote
                            synced-offset                                end offset that was known to be on disk

The metadata log belongs to the control plane: it is opened apart from the data partitions, and only the control
thread uses it. All records of an opened log are on disk. Snapshots that end before the log start offset are not listed.
"""

import logging
import os
from collections.abc import Callable, Iterator

from sskafka.model.settings import Settings
from sskafka.quorum.control_batches import QuorumSetup, control_batch, leader_change
from sskafka.quorum.metadata_opening import MetadataError, MetadataOpening, unusable_file
from sskafka.quorum.quorum_state import QuorumState, read_quorum_state, write_quorum_state
from sskafka.quorum.snapshots import (
    UNFINISHED_SUFFIX,
    StoredRecord,
    read_snapshot,
    snapshot_path,
    stored_records,
)
from sskafka.raft.election_state import ElectionState
from sskafka.raft.log_view import LOG_BEGINNING, OffsetAndEpoch, SnapshotId, log_contains
from sskafka.raft.ready import FollowerAppend, LeaderAppend, LeaderChange, SnapshotChunk
from sskafka.records.batch import HEADER_BYTES, CorruptBatchError, read_header, read_offset_and_size
from sskafka.storage.disk import Disk
from sskafka.storage.errors import CorruptFileError
from sskafka.storage.flusher import FlushPlan
from sskafka.storage.log import Log
from sskafka.storage.synced_offset import read_synced_offset, write_synced_offset
from sskafka.wire.codec import decode
from sskafka.wire.messages.control_records import SnapshotHeaderRecord

_log = logging.getLogger(__name__)
_READ_BYTES = 4 * 1024 * 1024
_HEADER_BATCH_BYTES_MAX = 64 * 1024


class MetadataLog:
    """Implements `RaftLog` for the Raft core, and the disk operations that its `Ready` requests."""

    def __init__(self, log: Log, snapshots: dict[SnapshotId, int], missing_end_offset: int | None = None) -> None:
        self.log = log
        self.missing_end_offset = missing_end_offset
        """The end offset that the log once had on this disk, until the log has been fetched up to there again.
        `synced-offset` keeps this value until then. None if nothing is missing."""
        self.snapshots = snapshots
        """Sizes of the snapshots in bytes, oldest snapshot first."""
        self.setup = QuorumSetup()
        self.on_election_written: Callable[[ElectionState], None] = lambda election: None
        self._disk = log.log_directory.disk
        self.log.on_files_deleted = self._remove

    @classmethod
    def open(cls, disk: Disk, home: str, settings: Settings, now_ms: int) -> "MetadataLog":
        """Open the metadata log. Raises MetadataError if it cannot be used."""
        try:
            opened = MetadataOpening(disk, home, settings, now_ms).run()
        except OSError as error:
            raise unusable_file(error) from error
        metadata_log = cls(opened.log, opened.snapshots, opened.missing_end_offset)
        metadata_log._align_with_snapshots()
        metadata_log._read_setup()
        return metadata_log

    def _align_with_snapshots(self) -> None:
        covered = max((snapshot_id.offset for snapshot_id in self.snapshots), default=0)
        if self.log.log_start_offset > covered:
            where = f"the metadata log in {self.directory} begins at {self.log.log_start_offset}"
            raise MetadataError(f"{where}, and no snapshot reaches there")
        latest = self.latest_snapshot_id()
        if latest is not None and not log_contains(self, latest):
            _log.warning("the metadata log ends before its snapshot %s; it restarts at the snapshot", latest)
            self._restart_at(latest)

    def _read_setup(self) -> None:
        """Replay the control records of snapshot and log, which are in effect even before they are committed."""
        for stored in self.snapshot_records():
            if stored.is_control:
                self.setup.replay(stored.record, from_log=False)
        for stored in self.records(self.start_offset, self.end_offset):
            if stored.is_control:
                self.setup.replay(stored.record, from_log=True)

    @property
    def directory(self) -> str:
        return self.log.directory

    @property
    def home(self) -> str:
        return os.path.dirname(self.log.directory)

    @property
    def disk(self) -> Disk:
        return self._disk

    def close(self) -> None:
        self.log.close()
        self._note_synced(self.end_offset)

    # ---- queries of the Raft core

    @property
    def start_offset(self) -> int:
        return self.log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self.log.log_end_offset

    @property
    def last_epoch(self) -> int:
        if self.log.epochs:
            return self.log.epochs.latest_epoch
        latest = self.latest_snapshot_id()
        return latest.epoch if latest else LOG_BEGINNING.epoch

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch | None:
        known = self._end_of_replaced_records()
        for found, start_offset in self.log.epochs.entries:
            if found > epoch:
                break
            known = OffsetAndEpoch(start_offset, found)
        if known is None or known.epoch > epoch:
            return None
        return OffsetAndEpoch(self._end_of(known.epoch), known.epoch)

    def _end_of_replaced_records(self) -> OffsetAndEpoch | None:
        if self.start_offset == 0:
            return LOG_BEGINNING
        return next((taken for taken in self.snapshots if taken.offset == self.start_offset), None)

    def _end_of(self, epoch: int) -> int:
        later = (start_offset for found, start_offset in self.log.epochs.entries if found > epoch)
        return next(later, self.end_offset)

    def latest_snapshot_id(self) -> SnapshotId | None:
        return max(self.snapshots, default=None)

    def snapshot_size(self, snapshot_id: SnapshotId) -> int | None:
        return self.snapshots.get(snapshot_id)

    def snapshot_id_at(self, end_offset: int) -> SnapshotId:
        """Return the id of a snapshot of all records before `end_offset`, which must not be above the log end."""
        if end_offset == self.start_offset:
            known = self._end_of_replaced_records()
            assert known is not None, "a log begins at a snapshot or at 0"
            return known
        return SnapshotId(end_offset, self.log.epochs.epoch_of(end_offset - 1))

    # ---- requests of a Ready

    def read_election(self) -> ElectionState:
        try:
            stored = read_quorum_state(self._disk, self.directory) or QuorumState()
        except CorruptFileError as error:
            raise MetadataError(str(error)) from error
        except OSError as error:
            raise unusable_file(error) from error
        election = ElectionState(stored.leader_epoch, stored.leader_id, stored.voted_id)
        return election.with_leader(election.leader_id) if election.has_leader else election

    def write_election(self, election: ElectionState, voters: tuple[int, ...]) -> None:
        state = QuorumState(election.epoch, election.leader_id, election.voted_id)
        version = self.setup.kraft_version
        try:
            write_quorum_state(self._disk, self.directory, state, voters=list(voters), kraft_version=version)
            self.on_election_written(election)
        except OSError as error:
            raise self.log.log_directory.fail(error) from error

    def append(self, append: LeaderAppend | FollowerAppend, now_ms: int) -> None:
        """Append the records. Raises StorageError, with nothing written, if the disk is full."""
        match append:
            case LeaderAppend(records=LeaderChange() as change):
                batch = control_batch([leader_change(change)], now_ms=now_ms)
                self.log.append_as_leader(batch, append.epoch, now_ms, from_client=False)
            case LeaderAppend(records=records):
                assert not isinstance(records, LeaderChange)
                self.log.append_as_leader(bytearray(records), append.epoch, now_ms, from_client=False)
            case FollowerAppend(batches):
                self.log.append_as_follower(b"".join(batch.data for batch in batches), now_ms)
        assert self.end_offset == append.end_offset, f"{append} left the log at {self.end_offset}"

    def truncate_to(self, offset: int) -> None:
        self._lower_synced_offset(offset)
        end_offset = self.log.truncate_to(offset)
        assert end_offset == offset, f"the truncation to {offset} split a batch that begins at {end_offset}"

    def plan_flush(self) -> FlushPlan:
        return self.log.plan_flush()

    def complete_flush(self, plan: FlushPlan) -> None:
        before = self.log.recovery_point
        self.log.complete_flush(plan)
        if self.log.recovery_point > before:
            self._note_synced(self.log.recovery_point)

    def _note_synced(self, offset: int) -> None:
        """Write `synced-offset`. On a full disk the file keeps its lower offset, which is safe."""
        if self.missing_end_offset is not None:
            return
        try:
            write_synced_offset(self._disk, self.directory, offset)
        except OSError as error:
            _log.debug("synced-offset could not be written: %s", error)

    def regained(self) -> None:
        """Note that the records that this disk had lost were fetched again, or were never committed."""
        _log.info("the metadata log is complete again, up to offset %d", self.end_offset)
        self.missing_end_offset = None
        self._note_synced(self.log.recovery_point)

    def _lower_synced_offset(self, offset: int) -> None:
        """Lower `synced-offset` durably, before the records from `offset` on are removed as the leader requested."""
        if offset < (read_synced_offset(self._disk, self.directory) or 0):
            try:
                write_synced_offset(self._disk, self.directory, offset, is_durable=True)
            except OSError as error:
                raise self.log.log_directory.fail(error) from error

    def read(self, start_offset: int, max_bytes: int) -> bytes:
        """Return complete batches: at least one, unless the log ends at `start_offset`."""
        with self.log.log_directory.reading():
            chunk = b"".join(bytes(part.read()) for part in self.log.read(start_offset, max_bytes, self.end_offset))
        return chunk[: _whole_batches(chunk)]

    # ---- snapshots

    def write_chunk(self, chunk: SnapshotChunk) -> None:
        path = self._unfinished_path(chunk.snapshot_id)
        try:
            file = self._disk.open(path, create=True)
            try:
                if chunk.position == 0:
                    file.truncate(0)
                file.write_at(chunk.data, chunk.position)
            finally:
                file.close()
        except OSError as error:
            raise self.log.log_directory.write_failed(error) from error

    def finish_snapshot(self, snapshot_id: SnapshotId) -> None:
        """Sync a snapshot file that has been written completely, and give it its final name."""
        path = self._unfinished_path(snapshot_id)
        try:
            file = self._disk.open(path)
            try:
                file.sync()
                size_bytes = file.size()
            finally:
                file.close()
            self._disk.rename(path, snapshot_path(self.directory, snapshot_id))
            self._disk.sync_directory(self.directory)
        except OSError as error:
            raise self.log.log_directory.fail(error) from error
        self.snapshots[snapshot_id] = size_bytes

    def install_snapshot(self, snapshot_id: SnapshotId) -> None:
        """Replace the log with a snapshot that was fetched from the leader."""
        self.finish_snapshot(snapshot_id)
        self._restart_at(snapshot_id)
        self.setup = QuorumSetup()
        self._read_setup()

    def _restart_at(self, snapshot_id: SnapshotId) -> None:
        """Restart the log at the end of the snapshot. `synced-offset` stays as it is while records are missing."""
        if self.missing_end_offset is None:
            self._lower_synced_offset(snapshot_id.offset)
        self.log.truncate_fully_and_start_at(snapshot_id.offset)

    def _unfinished_path(self, snapshot_id: SnapshotId) -> str:
        return snapshot_path(self.directory, snapshot_id).removesuffix(".checkpoint") + UNFINISHED_SUFFIX

    def read_snapshot_chunk(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> bytes:
        """Return up to `max_bytes` from `position` on; nothing beyond the end of the file."""
        with self.log.log_directory.reading():
            file = self._disk.open(snapshot_path(self.directory, snapshot_id))
            try:
                return bytes(file.read_at(max_bytes, position))
            finally:
                file.close()

    def snapshot_time_ms(self, snapshot_id: SnapshotId) -> int:
        """Return the time at which the last record in the snapshot was written."""
        beginning = self.read_snapshot_chunk(snapshot_id, 0, _HEADER_BATCH_BYTES_MAX)
        header, *_ = stored_records(beginning[: read_header(beginning).size_bytes])
        return decode(SnapshotHeaderRecord, 0, header.record.value or b"").last_contained_log_timestamp

    def trim_to(self, snapshot_id: SnapshotId) -> None:
        """Delete the records and the older snapshots that this snapshot replaces."""
        self.log.increment_log_start_offset(snapshot_id.offset)
        for old in [taken for taken in self.snapshots if taken < snapshot_id]:
            del self.snapshots[old]
            self._remove([snapshot_path(self.directory, old)])

    # ---- records

    def records(self, start_offset: int, end_offset: int) -> Iterator[StoredRecord]:
        """Yield the records in [start_offset, end_offset). Raises MetadataError if they are damaged."""
        try:
            yield from self._records(start_offset, end_offset)
        except CorruptBatchError as error:
            raise MetadataError(f"the metadata in {self.directory} is damaged: {error}") from error

    def _records(self, offset: int, end_offset: int) -> Iterator[StoredRecord]:
        while offset < end_offset:
            for stored in stored_records(self.read(offset, _READ_BYTES)):
                if offset <= stored.record.offset < end_offset:
                    yield stored
                offset = max(offset, stored.record.offset + 1)

    def snapshot_records(self) -> list[StoredRecord]:
        latest = self.latest_snapshot_id()
        if latest is None:
            return []
        try:
            return read_snapshot(self._disk, snapshot_path(self.directory, latest))
        except CorruptFileError as error:
            raise MetadataError(f"the metadata in {self.directory} is damaged: {error}") from error

    def _remove(self, paths: list[str]) -> None:
        for path in paths:
            try:
                self._disk.remove(path)
            except OSError as error:
                _log.warning("%s could not be removed: %s", path, error)


def _whole_batches(chunk: bytes) -> int:
    """Return the number of bytes of the complete batches at the start of `chunk`."""
    end = 0
    while len(chunk) - end >= HEADER_BYTES:
        _, size_bytes = read_offset_and_size(chunk, end)
        if size_bytes < HEADER_BYTES or end + size_bytes > len(chunk):
            break
        end += size_bytes
    return end
