"""Rebuild the leader epochs of an open log from its batches, because `leader-epoch-checkpoint` does not match them.

    EpochRepair(log)     on the event loop: notes which batches the log has now
    read()               in a thread: read the headers of all batches
    apply(log)           on the event loop: replace the epochs, unless the log was truncated meanwhile

Epochs that begin after the noted batches stay. The batches are believed only if their epochs never decrease.
"""

from sskafka.records.batch import CorruptBatchError
from sskafka.storage.batch_walk import walk_headers
from sskafka.storage.leader_epochs import NO_EPOCH
from sskafka.storage.log import Log


class EpochRepair:
    def __init__(self, log: Log) -> None:
        self._files = [(segment.file, segment.size_bytes) for segment in log.segments]
        self._end_offset = log.log_end_offset
        self._truncations = log.truncations
        self._entries: list[tuple[int, int]] = []

    def read(self) -> None:
        """Raise CorruptBatchError if the epochs of batches decrease, or if a header is damaged."""
        latest = NO_EPOCH
        for file, size_bytes in self._files:
            for _, header in walk_headers(file, 0, size_bytes):
                if header.leader_epoch < latest:
                    raise CorruptBatchError(f"leader epoch {header.leader_epoch} follows {latest}")
                if header.leader_epoch > latest:
                    latest = header.leader_epoch
                    self._entries.append((latest, header.base_offset))

    def apply(self, log: Log) -> bool:
        """Return whether the epochs were replaced."""
        if log.truncations != self._truncations or not log.is_in_service or not self._entries:
            return False
        latest = self._entries[-1][0]
        newer = [entry for entry in log.epochs.entries if entry[1] >= self._end_offset and entry[0] > latest]
        log.replace_epochs([*self._entries, *newer])
        return True
