"""The readable files that the lab expects beside the metadata log: the journal of topics and a mirror of quorum-state.

They are written only if `metadata.log.dir` is not a log directory: Apache Kafka does not expect such files there.
The mirror has the last leader that this voter accepted, its epoch, and the vote; quorum-state itself forgets the leader
when a newer epoch begins.
"""

import json
import os
from dataclasses import replace

from sskafka.lab.journal_file import JOURNAL_FILE, JournalFile
from sskafka.model.settings import Settings
from sskafka.quorum.metadata_log import MetadataLog
from sskafka.quorum.quorum_state import FILE_NAME
from sskafka.raft.election_state import ElectionState
from sskafka.raft.voters import NO_NODE
from sskafka.storage.disk import read_file, replace_file


def keeps_files(settings: Settings) -> bool:
    return settings["metadata.log.dir"] is not None and settings.metadata_directory not in settings.data_directories


def journal_path(settings: Settings) -> str | None:
    """Return the path of the journal, or None if no journal is kept."""
    return os.path.join(settings.metadata_directory, JOURNAL_FILE) if keeps_files(settings) else None


def quorum_state_path(settings: Settings) -> str | None:
    """Return the path of the readable mirror of quorum-state, or None if none is kept."""
    return os.path.join(settings.metadata_directory, FILE_NAME) if keeps_files(settings) else None


class QuorumFiles:
    """A `QuorumObserver` that writes the files."""

    def __init__(self, log: MetadataLog) -> None:
        self._disk = log.disk
        self._path = os.path.join(log.home, FILE_NAME)
        self._journal = JournalFile(log)

    def restored(self, election: ElectionState) -> ElectionState:
        if election.has_leader:
            return election
        last_leader_id, last_leader_epoch = self._read_mirror()
        return replace(election, last_leader_id=last_leader_id, last_leader_epoch=last_leader_epoch)

    def election_changed(self, election: ElectionState) -> None:
        fields = {
            "leader_id": election.last_leader_id,
            "leader_epoch": election.last_leader_epoch,
            "voted_id": election.voted_id,
        }
        replace_file(self._disk, self._path, (json.dumps(fields, indent=4) + "\n").encode())

    def committed_up_to(self, high_watermark: int) -> None:
        self._journal.advance_to(high_watermark)

    def snapshot_installed(self) -> None:
        self._journal.snapshot_installed()

    def _read_mirror(self) -> tuple[int, int]:
        """Return the last accepted leader and its epoch; -1 and 0 if the file does not have them."""
        if not self._disk.exists(self._path):
            return NO_NODE, 0
        try:
            fields = json.loads(read_file(self._disk, self._path))
            return int(fields["leader_id"]), int(fields["leader_epoch"])
        except (ValueError, KeyError, TypeError):
            return NO_NODE, 0


def maybe_keep_files(log: MetadataLog, settings: Settings) -> QuorumFiles | None:
    return QuorumFiles(log) if keeps_files(settings) else None
