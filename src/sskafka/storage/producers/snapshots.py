"""The snapshot files of a partition: one for each segment, taken when the segment is rolled, and one at a clean
shutdown.

Recovery starts from the newest valid snapshot that is not beyond the log's end, and replays the batches after it.
"""

import logging
import os

from sskafka.storage.disk import Disk, read_file, replace_file
from sskafka.storage.errors import CorruptFileError
from sskafka.storage.producers.entry import ProducerEntry
from sskafka.storage.producers.snapshot import SUFFIX, decode_snapshot, encode_snapshot
from sskafka.storage.producers.state import ProducerState
from sskafka.storage.segment import file_stem

_log = logging.getLogger(__name__)


class ProducerSnapshots:
    __slots__ = ("_directory", "_disk", "offsets")

    def __init__(self, disk: Disk, directory: str, offsets: list[int]) -> None:
        """`offsets`: the offsets of the existing files."""
        self._disk = disk
        self._directory = directory
        self.offsets = sorted(offsets)

    def take(self, state: ProducerState, offset: int) -> None:
        """Write the state of a log that ends at `offset`. Not synced: a snapshot torn by a power failure is rebuilt."""
        replace_file(self._disk, self._path(offset), encode_snapshot(state.producers.values()), sync=False)
        if offset not in self.offsets:
            self.offsets = sorted([*self.offsets, offset])

    def load_before(self, end_offset: int) -> tuple[int, list[ProducerEntry]] | None:
        """Return the newest valid snapshot that is not beyond `end_offset`. Invalid ones are removed."""
        for offset in [known for known in reversed(self.offsets) if known <= end_offset]:
            try:
                return offset, decode_snapshot(read_file(self._disk, self._path(offset)), self._path(offset))
            except CorruptFileError as error:
                _log.warning("%s; the snapshot is removed and rebuilt from the log", error)
                self.remove(offset)
        return None

    def remove_from(self, offset: int) -> None:
        """Remove the snapshots beyond a log that now ends at `offset`."""
        for known in [known for known in self.offsets if known > offset]:
            self.remove(known)

    def keep_only(self, segment_base_offsets: set[int]) -> None:
        """Keep only the snapshots of existing segments, and the newest one, which may lie within the last segment."""
        for known in self.offsets[:-1]:
            if known not in segment_base_offsets:
                self.remove(known)

    def remove(self, offset: int) -> None:
        if offset in self.offsets:
            self.offsets.remove(offset)
            self._disk.remove(self._path(offset))

    def _path(self, offset: int) -> str:
        return os.path.join(self._directory, file_stem(offset) + SUFFIX)
