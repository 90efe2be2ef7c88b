"""Open the files of the metadata log, and decide what to do about damaged ones.

    damage                                                   this node alone         there are other voters
    ---------------------------------------------------------------------------------------------------------------
    the end of the log, after `synced-offset`                truncated               truncated
    a snapshot whose records are in the log, too             opened without it       opened without it
    the log before `synced-offset`                           refused                 truncated; the rest is fetched
    a snapshot that the log does not replace                 refused                 all dropped and fetched

"Refused" means that no file has changed. Before this node drops records that it must fetch again, it makes
`synced-offset` durable. With that file the node knows, even after another restart, that it must not take part in
elections with an incomplete log (raft/node_state.py).
"""

import logging
import os
from typing import NamedTuple

from sskafka.model.ids import METADATA_TOPIC, METADATA_TOPIC_ID, TopicPartition
from sskafka.model.settings import Settings
from sskafka.quorum.control_batches import QuorumSetup
from sskafka.quorum.snapshots import check_snapshot, list_snapshots, read_snapshot, set_snapshot_aside, snapshot_path
from sskafka.raft.log_view import LOG_BEGINNING, SnapshotId
from sskafka.storage.disk import Disk
from sskafka.storage.errors import CorruptFileError, DamagedLogError, StorageError, next_step
from sskafka.storage.log import Log
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_directory import LogDirHealth
from sskafka.storage.partition_directory import directory_name
from sskafka.storage.partition_metadata import read_topic_id, write_topic_id
from sskafka.storage.recovery.opening import open_log
from sskafka.storage.synced_offset import read_synced_offset, write_synced_offset

_log = logging.getLogger(__name__)
KEEP_FOR_EVER = -1
PARTITION = TopicPartition(METADATA_TOPIC, 0)


class MetadataError(StorageError):
    """The metadata log cannot be used: damaged, or written by something newer."""


def unusable_file(error: OSError) -> MetadataError:
    return MetadataError(f"the metadata log cannot be opened: {error}{next_step(error)}")


class OpenedMetadata(NamedTuple):
    log: Log
    snapshots: dict[SnapshotId, int]
    """Sizes in bytes, oldest snapshot first."""
    missing_end_offset: int | None
    """The end that the log once had on this disk, if it ends earlier now."""


def metadata_log_config(settings: Settings) -> LogConfig:
    return LogConfig(
        segment_bytes=settings["metadata.log.segment.bytes"],
        segment_ms=settings["metadata.log.segment.ms"],
        retention_ms=KEEP_FOR_EVER,
        retention_bytes=KEEP_FOR_EVER,
    )


class MetadataOpening:
    def __init__(self, disk: Disk, home: str, settings: Settings, now_ms: int) -> None:
        self._disk = disk
        self._home = home
        self._settings = settings
        self._now_ms = now_ms
        self._directory = os.path.join(home, directory_name(PARTITION))
        disk.make_directory(self._directory, is_secret=True)  # SCRAM credentials are metadata
        self._snapshots = list_snapshots(disk, self._directory)
        self._damaged = self._find_damaged_snapshots()
        self._synced_offset = read_synced_offset(disk, self._directory)

    def run(self) -> OpenedMetadata:
        """Raise MetadataError if the metadata cannot be used."""
        log = self._open_log()
        if self._damaged:
            log = self._drop_damaged_snapshots(log)
        if read_topic_id(self._disk, self._directory) is None:
            write_topic_id(self._disk, self._directory, METADATA_TOPIC_ID)
        return OpenedMetadata(log, self._snapshots, self._missing_end_offset(log))

    def _missing_end_offset(self, log: Log) -> int | None:
        """Return the end offset of the records that are lost. None if there are none, or if a snapshot has all of them:
        then the node crashed while that snapshot replaced the log."""
        if self._synced_offset is None:
            return None
        reached = max(log.log_end_offset, max(self._snapshots, default=LOG_BEGINNING).offset)
        return self._synced_offset if reached < self._synced_offset else None

    # ---- the log

    def _open_log(self) -> Log:
        intact = [taken.offset for taken in self._snapshots if taken not in self._damaged]
        synced_offset = self._synced_offset
        if synced_offset is not None and synced_offset <= max(intact, default=0):
            synced_offset = None
        try:
            log = self._recover(synced_offset)
        except DamagedLogError as error:
            self._require_other_voters(str(error), synced_offset)
            return self._recover(None)
        if synced_offset is not None and log.log_end_offset < synced_offset:
            where = f"the metadata log in {self._directory} ends at offset {log.log_end_offset}"
            try:
                self._require_other_voters(where, synced_offset)
            except MetadataError:
                log.abandon()
                raise
        return log

    def _recover(self, kept_before: int | None) -> Log:
        return open_log(
            LogDirHealth(self._disk, self._home),
            self._directory,
            PARTITION,
            metadata_log_config(self._settings),
            now_ms=self._now_ms,
            topic_id=METADATA_TOPIC_ID,
            log_start_offset=min(self._snapshots, default=LOG_BEGINNING).offset,
            kept_before=kept_before,
        )

    def _require_other_voters(self, problem: str, synced_offset: int | None) -> None:
        """Refuse to lose what was on this disk, unless there are other voters to fetch it from."""
        if not self._has_other_voters():
            raise MetadataError(_lost_metadata(self._home, problem, synced_offset))
        _log.error("%s; this node fetches what is lost, up to offset %s, from the other voters", problem, synced_offset)
        self._remember_end(synced_offset or 0)

    def _remember_end(self, offset: int) -> None:
        self._synced_offset = max(offset, self._synced_offset or 0)
        try:
            write_synced_offset(self._disk, self._directory, self._synced_offset, is_durable=True)
        except OSError as error:
            raise MetadataError(f"synced-offset in {self._directory} cannot be written: {error}") from error

    def _has_other_voters(self) -> bool:
        """Return whether settings or snapshots name another voter. Voters that only the log names may be lost with
        it."""
        node_id = self._settings["node.id"]
        if self._settings.voters:
            return any(voter.id != node_id for voter in self._settings.voters)
        setup = QuorumSetup()
        for snapshot_id in self._snapshots:
            if snapshot_id not in self._damaged:
                for stored in read_snapshot(self._disk, snapshot_path(self._directory, snapshot_id)):
                    if stored.is_control:
                        setup.replay(stored.record, from_log=False)
        return setup.voters is not None and any(voter.voter_id != node_id for voter in setup.voters.voters)

    # ---- snapshots

    def _find_damaged_snapshots(self) -> dict[SnapshotId, str]:
        problems: dict[SnapshotId, str] = {}
        for snapshot_id in self._snapshots:
            try:
                check_snapshot(self._disk, snapshot_path(self._directory, snapshot_id))
            except CorruptFileError as error:
                problems[snapshot_id] = str(error)
        return problems

    def _drop_damaged_snapshots(self, log: Log) -> Log:
        problems = "; ".join(self._damaged.values())
        if self._log_replaces_damaged_snapshots(log):
            log.abandon()
            self._set_aside(list(self._damaged))
            _log.error("%s; the log has all of its records, the file is set aside", problems)
            return self._recover(self._synced_offset)
        self._fetch_everything(log, problems)
        self._set_aside(list(self._snapshots))
        return log

    def _log_replaces_damaged_snapshots(self, log: Log) -> bool:
        """Return whether the segments reach from an intact snapshot, or from 0, to the end of the damaged ones."""
        intact = [taken for taken in self._snapshots if taken not in self._damaged]
        first_offset = next(iter(log.segments)).base_offset
        is_start_covered = first_offset <= max(intact, default=LOG_BEGINNING).offset
        return is_start_covered and log.log_end_offset >= max(self._damaged).offset

    def _set_aside(self, snapshot_ids: list[SnapshotId]) -> None:
        for snapshot_id in snapshot_ids:
            set_snapshot_aside(self._disk, snapshot_path(self._directory, snapshot_id))
            del self._snapshots[snapshot_id]

    def _fetch_everything(self, log: Log, problems: str) -> None:
        if not self._has_other_voters():
            log.abandon()
            raise MetadataError(
                f"{problems}, and the metadata log in {self._directory} starts after its records, at offset "
                f"{log.log_start_offset}; the broker does not start without them. Restore {self._home} from a copy"
            )
        _log.error("%s; this node fetches all metadata from the other voters", problems)
        self._remember_end(max(log.log_end_offset, max(self._damaged).offset))
        log.truncate_fully_and_start_at(0)


def _lost_metadata(home: str, where: str, synced_offset: int | None) -> str:
    return (
        f"{where}, but metadata up to offset {synced_offset} was on the disk and may have been acknowledged; the "
        f"broker does not start without it. Restore {home} from a copy, or accept that all records behind the "
        f"damage are lost: `sskafka log verify {home} --repair --allow-data-loss`"
    )
