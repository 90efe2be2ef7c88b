"""`__cluster_metadata.log`: the readable journal of topics, beside the metadata log if that has its own directory.

    0 1 create-topic {...}        lines: see journal.py
    .journal-position             {"lines":1,"next_offset":12}: the lines cover the metadata log below that offset

The journal is written from the committed records, batch by batch, so that every node numbers its lines alike. The
position is written after the lines. Lines that a crash leaves after the position are truncated and written again. A
journal that cannot be continued is rewritten, from the snapshot if the log has lost its beginning.
"""

import json
import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby

from sskafka.lab.journal import journal_entries
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage, changes_between
from sskafka.metadata.record_codec import UnknownRecordError, decode_record
from sskafka.metadata.records import MetadataRecord, PartitionRecord, RemoveTopicRecord, TopicRecord
from sskafka.quorum.metadata_log import MetadataLog
from sskafka.quorum.snapshots import StoredRecord
from sskafka.storage.disk import read_file, replace_file

_log = logging.getLogger(__name__)

JOURNAL_FILE = "__cluster_metadata.log"
POSITION_FILE = ".journal-position"
_JOURNALED = (TopicRecord, PartitionRecord, RemoveTopicRecord)


class JournalFile:
    def __init__(self, log: MetadataLog) -> None:
        """Continue at the end of the file, or start a new one."""
        self._log = log
        self._disk = log.disk
        self._path = os.path.join(log.home, JOURNAL_FILE)
        self._position_path = os.path.join(log.home, POSITION_FILE)
        self._image = ClusterImage()
        self._next_offset = log.start_offset
        self._lines = 0
        self._size_bytes = 0
        self._is_broken = False
        with self._giving_up_on_errors():
            position = self._read_position()
            if position is None:
                self._restart()
            else:
                self._go_on(*position)

    def advance_to(self, end_offset: int) -> None:
        """Add the changes that are committed below `end_offset`."""
        if end_offset > self._next_offset and not self._is_broken:
            with self._giving_up_on_errors():
                self._write(list(self._lines_up_to(end_offset)))

    def snapshot_installed(self) -> None:
        """Add the changes of the snapshot that the journal does not have."""
        if not self._is_broken:
            with self._giving_up_on_errors():
                self._write(list(self._lines_of_snapshot()))

    @contextmanager
    def _giving_up_on_errors(self) -> Iterator[None]:
        """Stop writing the journal after an error: a full disk must not stop the node for a convenience file."""
        try:
            yield
        except OSError as error:
            self._is_broken = True
            _log.error("%s is not written until the next start: %s", self._path, error)

    # ---- at the start

    def _restart(self) -> None:
        replace_file(self._disk, self._path, b"")
        self._write(list(self._lines_of_snapshot()))

    def _go_on(self, lines: int, size_bytes: int, next_offset: int) -> None:
        for _ in (*self._lines_of_snapshot(), *self._lines_up_to(next_offset)):
            pass  # only the image advances: the lines exist
        self._lines, self._size_bytes = lines, size_bytes
        file = self._disk.open(self._path)
        try:
            file.truncate(size_bytes)
        finally:
            file.close()

    def _read_position(self) -> tuple[int, int, int] | None:
        """Return the lines, their size, and the metadata offset after them. None if the journal cannot be continued."""
        if not self._disk.exists(self._path) or not self._disk.exists(self._position_path):
            return None
        whole_lines = read_file(self._disk, self._path).split(b"\n")[:-1]
        try:
            position = json.loads(read_file(self._disk, self._position_path))
            lines, next_offset = int(position["lines"]), int(position["next_offset"])
        except (ValueError, KeyError, TypeError):
            return None
        latest = self._log.latest_snapshot_id()
        is_behind = latest is not None and next_offset < latest.offset
        if is_behind or lines > len(whole_lines) or not self._log.start_offset <= next_offset <= self._log.end_offset:
            return None
        return lines, sum(len(line) + 1 for line in whole_lines[:lines]), next_offset

    # ---- lines

    def _lines_of_snapshot(self) -> Iterator[str]:
        latest = self._log.latest_snapshot_id()
        if latest is None:
            return
        image = ClusterImage()
        for record in _topic_records(self._log.snapshot_records()):
            image.replay(record, MetadataDelta())
        changes = changes_between(self._image, image)
        self._image, self._next_offset = image, latest.offset
        for entry in journal_entries(changes, image, latest.epoch, self._lines):
            yield entry.line()

    def _lines_up_to(self, end_offset: int) -> Iterator[str]:
        number = self._lines
        records = self._log.records(self._next_offset, end_offset)
        for header, batch in groupby(records, key=lambda stored: stored.batch):
            delta = MetadataDelta()
            for record in _topic_records(batch):
                self._image.replay(record, delta)
            for entry in journal_entries(delta, self._image, header.leader_epoch, number):
                number += 1
                yield entry.line()
        self._next_offset = end_offset

    def _write(self, lines: list[str]) -> None:
        if not lines and self._disk.exists(self._position_path):
            return
        data = "".join(lines).encode()
        file = self._disk.open(self._path)
        try:
            file.write_at(data, self._size_bytes)
        finally:
            file.close()
        self._lines += len(lines)
        self._size_bytes += len(data)
        position = {"lines": self._lines, "next_offset": self._next_offset}
        replace_file(self._disk, self._position_path, json.dumps(position).encode())


def _topic_records(stored: Iterable[StoredRecord]) -> Iterator[MetadataRecord]:
    for item in stored:
        if item.is_control:
            continue
        try:
            record = decode_record(item.record.value or b"")
        except UnknownRecordError:
            continue
        if isinstance(record, _JOURNALED):
            yield record
