"""The snapshot files of a partition: one for each segment, taken when it begins, and one at a clean stop.

Recovery begins with the newest that is whole and not beyond the log's end, and replays the batches behind it.
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
        """`offsets`: those for which there are files."""
        self._disk = disk
        self._directory = directory
        self.offsets = sorted(offsets)

    def take(self, state: ProducerState, offset: int) -> None:
        """The state is that of a log which ends at `offset`. Not synced: one that a power cut tears is made anew."""
        replace_file(self._disk, self._path(offset), encode_snapshot(state.producers.values()), sync=False)
        if offset not in self.offsets:
            self.offsets = sorted([*self.offsets, offset])

    def load_before(self, end_offset: int) -> tuple[int, list[ProducerEntry]] | None:
        """The newest that is whole and not beyond `end_offset`; what is broken is removed."""
        for offset in [known for known in reversed(self.offsets) if known <= end_offset]:
            try:
                return offset, decode_snapshot(read_file(self._disk, self._path(offset)), self._path(offset))
            except CorruptFileError as error:
                _log.warning("%s; it is removed and its content made anew from the log", error)
                self.remove(offset)
        return None

    def remove_from(self, offset: int) -> None:
        """Those beyond a log that now ends at `offset`."""
        for known in [known for known in self.offsets if known > offset]:
            self.remove(known)

    def keep_only(self, segment_base_offsets: set[int]) -> None:
        """The newest may lie within the last segment, every other one belongs to a segment."""
        for known in self.offsets[:-1]:
            if known not in segment_base_offsets:
                self.remove(known)

    def remove(self, offset: int) -> None:
        if offset in self.offsets:
            self.offsets.remove(offset)
            self._disk.remove(self._path(offset))

    def _path(self, offset: int) -> str:
        return os.path.join(self._directory, file_stem(offset) + SUFFIX)
