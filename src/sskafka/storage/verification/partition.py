"""Check one partition directory: every batch, every index, and the small files. Changes nothing.

Batches are checked by the rules of recovery (segment_check.py), so a repair truncates exactly where the check says.
Segments with message formats 0 and 1 have their own rules: valid checksums and increasing offsets.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sskafka.model.ids import TopicPartition
from sskafka.records.batch import BatchHeader, CorruptBatchError
from sskafka.records.control import ControlType
from sskafka.records.legacy import LEGACY_MAGICS
from sskafka.storage import leader_epochs, offset_index, synced_offset, time_index
from sskafka.storage.batch_walk import walk_headers
from sskafka.storage.disk import Disk, read_file
from sskafka.storage.errors import CorruptFileError
from sskafka.storage.leader_epochs import LeaderEpochs
from sskafka.storage.log_config import LogConfig
from sskafka.storage.open_files import OpenFiles
from sskafka.storage.partition_metadata import read_topic_id
from sskafka.storage.producers import snapshot as producer_snapshot
from sskafka.storage.producers.snapshot import decode_snapshot
from sskafka.storage.segment import DELETED_SUFFIX, LOG_SUFFIX, SUFFIXES, Segment, file_stem
from sskafka.storage.segment_check import Expectations, verify_segment
from sskafka.storage.segment_swap import CLEANED_SUFFIX, SWAP_SUFFIX
from sskafka.storage.transactions import index as transaction_index
from sskafka.storage.transactions.index import TransactionIndex
from sskafka.storage.transactions.marker import maybe_read_marker
from sskafka.storage.verification.findings import Finding, PartitionReport, Remedy
from sskafka.storage.verification.index import BatchPosition, offset_index_mismatches, time_index_problems
from sskafka.storage.verification.walk import SegmentReader

# Gaps do not count as damage here: compaction makes them, and no file tells whether a topic is compacted.
CHECK_CONFIG = LogConfig(cleanup_policy=("compact", "delete"))

_CHECKPOINT_SUFFIX = ".checkpoint"
_QUORUM_STATE = "quorum-state"
_LEFTOVERS = {
    DELETED_SUFFIX: "deleted, will be removed",
    CLEANED_SUFFIX: "a compaction that was interrupted; its source is still there",
    SWAP_SUFFIX: "a compaction that was interrupted; the next start completes it",
    ".tmp": "a small file that was being replaced",
    ".part": "a snapshot that was being written",
}


class OpenTransactions:
    """Finds the aborted transactions in a log's batches, which it takes in order, to compare them with the transaction
    indexes.

    Compaction may have removed a transaction's data, and retention its beginning; the index entry is not required then.
    Every transaction found here must be in a transaction index."""

    __slots__ = ("_producer_ids",)

    def __init__(self) -> None:
        self._producer_ids: set[int] = set()

    def is_aborted_by(self, segment: Segment, position: int, header: BatchHeader) -> bool:
        """Return whether the batch is the marker that aborts a transaction with data in this log."""
        if not header.is_transactional:
            return False
        if not header.is_control:
            self._producer_ids.add(header.producer_id)
            return False
        marker = maybe_read_marker(segment.file.read_at(header.size_bytes, position), header)
        if marker is None or header.producer_id not in self._producer_ids:
            return False
        self._producer_ids.discard(header.producer_id)
        return marker.type is ControlType.ABORT


def check_partition(disk: Disk, directory: str, topic_partition: TopicPartition) -> PartitionReport:
    return _PartitionCheck(disk, directory, topic_partition).run()


@dataclass(slots=True)
class _PartitionCheck:
    disk: Disk
    directory: str
    topic_partition: TopicPartition
    report: PartitionReport = field(init=False)
    sizes: dict[str, int] = field(init=False)
    epochs: LeaderEpochs = field(init=False)
    transactions: OpenTransactions = field(default_factory=OpenTransactions)

    def __post_init__(self) -> None:
        self.report = PartitionReport(os.path.basename(self.directory), self.topic_partition)
        self.sizes = {entry.name: entry.size_bytes for entry in self.disk.entries(self.directory)}
        self.epochs = LeaderEpochs(self.disk, self._path(leader_epochs.FILE_NAME), [])

    def run(self) -> PartitionReport:
        self._check_small_files()
        self._check_leftovers()
        bases = self._offsets_of(LOG_SUFFIX)
        if bases:
            self.report.start_offset = self.report.end_offset = bases[0]
        for number, base_offset in enumerate(bases, start=1):
            self._check_segment(base_offset, bases[number] if number < len(bases) else None)
        self._check_what_is_beyond_the_end()
        self._check_synced_offset()
        return self.report

    # ---- small files

    def _check_small_files(self) -> None:
        try:
            read_topic_id(self.disk, self.directory)
        except CorruptFileError as error:
            self._find("partition.metadata", str(error), Remedy.MANUAL)
        try:
            self.epochs = LeaderEpochs.load(self.disk, self._path(leader_epochs.FILE_NAME))
        except CorruptFileError as error:
            self._find(leader_epochs.FILE_NAME, str(error), Remedy.REBUILD)
        for offset in self._offsets_of(producer_snapshot.SUFFIX):
            name = file_stem(offset) + producer_snapshot.SUFFIX
            try:
                decode_snapshot(read_file(self.disk, self._path(name)), name)
            except CorruptFileError as error:
                self._find(name, str(error), Remedy.REBUILD)
        for name in self.sizes:
            if name.endswith(_CHECKPOINT_SUFFIX):
                self._check_metadata_snapshot(name)
        if _QUORUM_STATE in self.sizes:
            self._check_quorum_state()

    def _check_synced_offset(self) -> None:
        synced, end_offset = synced_offset.read_synced_offset(self.disk, self.directory), self.report.end_offset
        if synced is not None and end_offset < synced:
            text = f"records up to offset {synced} were on disk before, but the log is readable only up to {end_offset}"
            self._find(synced_offset.FILE_NAME, text, Remedy.DATA_LOSS)

    def _check_metadata_snapshot(self, name: str) -> None:
        with SegmentReader(Path(self._path(name))) as snapshot:
            for batch in snapshot.walk():
                if not batch.is_valid:
                    self._find(name, f"the batch at byte {batch.position} does not match its checksum", Remedy.MANUAL)
            if snapshot.problem is not None:
                self._find(name, f"at byte {snapshot.end}: {snapshot.problem}", Remedy.MANUAL)

    def _check_quorum_state(self) -> None:
        try:
            state = json.loads(read_file(self.disk, self._path(_QUORUM_STATE)))
            int(state["leaderEpoch"])
        except (ValueError, KeyError, TypeError) as error:
            self._find(_QUORUM_STATE, f"it cannot be read: {error!r}", Remedy.MANUAL)

    def _check_leftovers(self) -> None:
        logs = {name.removesuffix(LOG_SUFFIX) for name in self.sizes if name.endswith(LOG_SUFFIX)}
        for name in sorted(self.sizes):
            stem, suffix = os.path.splitext(name)
            if suffix in _LEFTOVERS:
                self._find(name, _LEFTOVERS[suffix], Remedy.NONE_NEEDED)
            elif suffix in SUFFIXES and stem not in logs:
                self._find(name, "its segment is missing", Remedy.NONE_NEEDED)

    def _check_what_is_beyond_the_end(self) -> None:
        end_offset = self.report.end_offset
        for epoch, start in self.epochs.entries:
            if start > end_offset:
                text = f"epoch {epoch} begins at {start}, but the log ends at {end_offset}"
                self._find(leader_epochs.FILE_NAME, text, Remedy.REBUILD)
        for offset in self._offsets_of(producer_snapshot.SUFFIX):
            if offset > end_offset:
                name = file_stem(offset) + producer_snapshot.SUFFIX
                self._find(
                    name, f"the snapshot is at offset {offset}, but the log ends at {end_offset}", Remedy.REBUILD
                )

    # ---- segments

    def _check_segment(self, base_offset: int, following: int | None) -> None:
        name = file_stem(base_offset) + LOG_SUFFIX
        self.report.segments += 1
        self.report.size_bytes += self.sizes[name]
        if self._has_old_format_at(name, 0):
            batches = self._check_old_segment(name)
        else:
            batches = self._check_batches(name, base_offset, following)
        self.report.batches += len(batches)
        if batches:
            self.report.end_offset = max(self.report.end_offset, batches[-1].last_offset + 1)
        if self.sizes[name]:
            self._check_indexes(base_offset, batches)

    def _check_batches(self, name: str, base_offset: int, following: int | None) -> list[BatchPosition]:
        segment = Segment(
            self.disk, self.directory, base_offset, CHECK_CONFIG, OpenFiles(), size_bytes=self.sizes[name]
        )
        verdict = verify_segment(segment, Expectations(self.epochs, None, following))
        if verdict.problem is not None:
            if self._has_old_format_at(name, verdict.good_bytes, must_be_valid=True):
                return self._check_old_segment(name)
            self._report_damage(name, verdict.good_bytes, verdict.problem.partition(": ")[2], following)
        return list(self._positions(segment, verdict.good_bytes))

    def _positions(self, segment: Segment, good_bytes: int) -> Iterator[BatchPosition]:
        """Yield what indexes must know about the batches. Aborted transactions are compared with their index on the
        way."""
        aborts: set[int] = set()
        next_offset: int | None = self.report.end_offset if self.report.batches else None
        for position, header in walk_headers(segment.file, 0, good_bytes):
            if self.transactions.is_aborted_by(segment, position, header):
                aborts.add(header.last_offset)
            self.report.gaps += next_offset is not None and header.base_offset > next_offset
            next_offset = header.next_offset
            yield BatchPosition(position, header.last_offset, header.max_timestamp)
        self._check_transaction_index(file_stem(segment.base_offset) + transaction_index.SUFFIX, aborts)

    def _check_transaction_index(self, name: str, aborts: set[int]) -> None:
        try:
            missing = aborts - {entry.last_offset for entry in TransactionIndex(self.disk, self._path(name))}
        except CorruptFileError as error:
            self._find(name, str(error), Remedy.REBUILD)
            return
        if missing:
            text = f"{len(missing)} aborted transactions are not in it; the first ends at {min(missing)}"
            self._find(name, text, Remedy.REBUILD)

    def _report_damage(self, name: str, position: int, problem: str, following: int | None) -> None:
        behind = self._count_valid_batches_after(name, position)
        text = f"at byte {position}: {problem}"
        if behind:
            self._find(name, f"{text}; {behind} valid batches follow it", Remedy.DATA_LOSS)
        elif following is not None:
            self._find(name, f"{text}; the segments from {following} on follow it", Remedy.DATA_LOSS)
        else:
            rest = self.sizes[name] - position
            self._find(name, f"{text}; torn end, {rest} unreadable bytes", Remedy.TRUNCATE)

    def _count_valid_batches_after(self, name: str, position: int) -> int:
        """Count batches with a valid checksum from the damage on. The damaged batch counts too if only its offset is
        wrong."""
        with SegmentReader(Path(self._path(name))) as reader:
            count, at = 0, position - 1
            while (batch := reader.next_good_batch(at)) is not None:
                count += 1
                at = batch.position + batch.size_bytes - 1
            return count

    def _has_old_format_at(self, name: str, position: int, *, must_be_valid: bool = False) -> bool:
        with SegmentReader(Path(self._path(name))) as reader:
            try:
                batch = reader.batch_at(position)
            except CorruptBatchError:
                return False
            return batch.header.magic in LEGACY_MAGICS and (batch.is_valid or not must_be_valid)

    def _check_old_segment(self, name: str) -> list[BatchPosition]:
        self.report.has_old_formats = True
        self._find(name, "messages of an old format, which brokers since 4.0 do not serve", Remedy.NONE_NEEDED)
        batches: list[BatchPosition] = []
        with SegmentReader(Path(self._path(name))) as reader:
            for batch in reader.walk():
                if not batch.is_valid:
                    self._find(name, f"at byte {batch.position}: it does not match its checksum", Remedy.MANUAL)
                if batches and batch.last_offset <= batches[-1].last_offset:
                    text = f"at byte {batch.position}: offset {batch.last_offset} follows {batches[-1].last_offset}"
                    self._find(name, text, Remedy.MANUAL)
                batches.append(BatchPosition.of(batch))
            if reader.problem is not None:
                self._find(name, f"at byte {reader.end}: {reader.problem}", Remedy.MANUAL)
        return batches

    # ---- indexes

    def _check_indexes(self, base_offset: int, batches: list[BatchPosition]) -> None:
        stem = file_stem(base_offset)
        for suffix, layout in (
            (offset_index.SUFFIX, offset_index.OffsetIndex.layout),
            (time_index.SUFFIX, time_index.TimeIndex.layout),
        ):
            name = stem + suffix
            if name not in self.sizes:
                self._find(name, "it is missing", Remedy.REBUILD)
            elif self.sizes[name] % layout.size:
                self._find(name, f"{self.sizes[name]} bytes, not a multiple of {layout.size}", Remedy.REBUILD)
            else:
                for text in _index_problems(Path(self._path(name)), batches):
                    self._find(name, text, Remedy.REBUILD)

    # ---- parts

    def _offsets_of(self, suffix: str) -> list[int]:
        stems = [name.removesuffix(suffix) for name in self.sizes if name.endswith(suffix)]
        return sorted(int(stem) for stem in stems if stem.isdecimal())

    def _find(self, name: str, text: str, remedy: Remedy) -> None:
        self.report.findings.append(Finding(self._path(name), text, remedy))

    def _path(self, name: str) -> str:
        return os.path.join(self.directory, name)


def _index_problems(path: Path, batches: list[BatchPosition]) -> Iterator[str]:
    """Yield the first problem of each kind: one bad entry is reason enough to rebuild the index."""
    if path.suffix == offset_index.SUFFIX:
        mismatches = offset_index_mismatches(path, batches)
        if mismatches:
            offset, found = mismatches[0]
            yield f"{len(mismatches)} wrong entries; the first has offset {offset}, where the log has {found}"
        return
    problems = time_index_problems(path, batches)
    if problems.wrong:
        timestamp, found = problems.wrong[0]
        yield f"{len(problems.wrong)} wrong timestamps; the first is {timestamp}, where the log has {found}"
    if problems.unordered:
        yield f"timestamp {problems.unordered[0].indexed} follows {problems.unordered[0].found}"
    if problems.unfound:
        yield f"offset {problems.unfound[0].indexed} is not the last of any batch"
