"""Open a log from its files.

After a clean shutdown the files are trusted: only the end of the last segment is read. Otherwise every segment from the
recovery point on is verified (segment_check.py), the log is truncated at the first invalid batch, and everything
derived from the batches is rebuilt: indexes, leader epochs, producer state. Then the log is synced, so that all of an
open log is on disk and its next recovery starts at its end. Segments with missing or impossible indexes are verified
and rebuilt even after a clean shutdown.

    finish swaps -> list files -> open segments -> verify if needed -> end offset -> epochs -> producers -> sync -> Log

The sync is a step of its own (`RecoveredFiles.sync`), because it waits for the disk and not for the CPU: logs are
verified by few threads and synced by many.
"""

import logging
import os
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from sskafka.model.ids import ZERO_UUID, TopicPartition, Uuid
from sskafka.records.batch import BatchHeader, CorruptBatchError
from sskafka.storage import leader_epochs, offset_index, time_index
from sskafka.storage.disk import DirectorySync, Disk, DiskEntry
from sskafka.storage.errors import CorruptFileError, DamagedLogError
from sskafka.storage.flusher import Flusher, Syncable, sync_files
from sskafka.storage.leader_epochs import NO_EPOCH, LeaderEpochs
from sskafka.storage.log import Log
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_directory import LogDirHealth
from sskafka.storage.open_files import OpenFiles
from sskafka.storage.producers import snapshot as producer_snapshot
from sskafka.storage.producers.rebuild import rebuild_producers, replay_batch
from sskafka.storage.producers.snapshots import ProducerSnapshots
from sskafka.storage.producers.state import ProducerState
from sskafka.storage.readable_log import LogParts
from sskafka.storage.recovery.report import RecoveryReport
from sskafka.storage.segment import DELETED_SUFFIX, LOG_SUFFIX, SUFFIXES, Segment
from sskafka.storage.segment_check import CheckedSegment, Expectations, rebuild_segment, verify_segment
from sskafka.storage.segment_swap import CLEANED_SUFFIX, SWAP_SUFFIX, finish_swaps
from sskafka.storage.transactions import index as transaction_index

_log = logging.getLogger(__name__)
_DERIVED_SUFFIXES = {suffix for suffix in SUFFIXES if suffix != LOG_SUFFIX} | {producer_snapshot.SUFFIX}
UNEXPECTED_SUFFIX = ".unexpected"
"""Appended to the name of a directory or link that has the name of a file. It is kept for the operator to inspect."""
_LEFTOVER_SUFFIXES = (DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX, ".tmp")


def open_log(
    log_directory: LogDirHealth,
    directory: str,
    topic_partition: TopicPartition,
    config: LogConfig,
    *,
    now_ms: int,
    flusher: Flusher | None = None,
    topic_id: Uuid = ZERO_UUID,
    log_start_offset: int = 0,
    recovery_point: int = 0,
    was_clean_stop: bool = False,
    cleaned_before: int | None = None,
    high_watermark: int | None = None,
    kept_before: int | None = None,
    report: RecoveryReport | None = None,
) -> Log:
    """Open the log in `directory`, which is created if it is missing. An OSError takes the log directory offline."""
    known = KnownOffsets(log_start_offset, recovery_point, was_clean_stop, cleaned_before, high_watermark, kept_before)
    try:
        recovered = recover_files(log_directory.disk, directory, config, now_ms, known)
        recovered.sync()
    except OSError as error:
        raise log_directory.sync_failed(error) from error
    return make_log(log_directory, directory, topic_partition, config, recovered, flusher, topic_id, report)


class KnownOffsets(NamedTuple):
    """What the checkpoints of a log directory say about one log."""

    log_start_offset: int
    recovery_point: int
    was_clean_stop: bool
    cleaned_before: int | None
    """Offset up to which the log was compacted, or None if it never was."""
    high_watermark: int | None
    """Transactions are complete below this offset; None if it is unknown."""
    kept_before: int | None = None
    """Raise DamagedLogError, and leave the log unchanged, if recovery would lose records below this offset."""


class RecoveredFiles(NamedTuple):
    """The files of a log after recovery, and the outcome of the recovery."""

    parts: LogParts
    recovery_point_before: int
    verified_segments: int
    was_cut: bool
    unsynced: Sequence[Syncable]
    """What was verified and may be in memory only."""

    def sync(self) -> None:
        """Sync what was verified. From then on it counts as flushed. Must be done before the log is used."""
        sync_files(self.unsynced)

    def close(self) -> None:
        """Close files that no log uses."""
        for segment in self.parts.segments:
            segment.close()


def recover_files(disk: Disk, directory: str, config: LogConfig, now_ms: int, known: KnownOffsets) -> RecoveredFiles:
    """Open the files of a log and recover them if needed. May run in any thread; raises OSError.

    The caller must sync the result before it uses it."""
    try:
        opening = _Opening(disk, directory, config, now_ms, known.high_watermark, known.kept_before)
        parts = opening.run(known.log_start_offset, known.recovery_point, known.was_clean_stop, known.cleaned_before)
    except CorruptBatchError as error:
        home = os.path.dirname(directory)
        raise CorruptFileError(
            f"the log in {directory} is damaged: {error}; restore it from a copy, or truncate it at the damage: "
            f"`sskafka log verify {home} --repair`"
        ) from error
    return RecoveredFiles(
        parts, known.recovery_point, opening.verified_segments, opening.was_cut, opening.files_to_sync()
    )


def make_log(
    log_directory: LogDirHealth,
    directory: str,
    topic_partition: TopicPartition,
    config: LogConfig,
    recovered: RecoveredFiles,
    flusher: Flusher | None = None,
    topic_id: Uuid = ZERO_UUID,
    report: RecoveryReport | None = None,
) -> Log:
    """Create the log from recovered files."""
    if report is not None:
        report.add(recovered.verified_segments, recovered.was_cut)
    flusher = flusher or Flusher(log_directory)
    log = Log(directory, topic_partition, config, recovered.parts, log_directory, flusher, topic_id)
    if recovered.recovery_point_before > log.log_end_offset:
        log.note_checkpointed_recovery_point(recovered.recovery_point_before)
    return log


class _Opening:
    def __init__(
        self,
        disk: Disk,
        directory: str,
        config: LogConfig,
        now_ms: int,
        high_watermark: int | None,
        kept_before: int | None,
    ) -> None:
        disk.make_directory(directory)
        self._disk = disk
        self._directory = directory
        self._config = config
        self._now_ms = now_ms
        self._high_watermark = high_watermark
        self._kept_before = kept_before
        self._open_files = OpenFiles()
        self._has_new_segment = False
        self.verified_segments = 0
        self.was_cut = False
        self._set_aside: set[str] = set()  # names of files that were something else
        self._sizes = self._list_files()
        self._snapshots = ProducerSnapshots(disk, directory, self._offsets_of(producer_snapshot.SUFFIX))
        self._epochs = self._load_epochs()
        self._producers = ProducerState()
        self._suspects: set[int] = set()  # base offsets of segments with missing or impossible indexes
        self._segments = [self._open_segment(base_offset) for base_offset in self._offsets_of(LOG_SUFFIX)]

    def run(
        self, log_start_offset: int, recovery_point: int, was_clean_stop: bool, cleaned_before: int | None
    ) -> LogParts:
        if not was_clean_stop:
            start = max((s.base_offset for s in self._segments if s.base_offset <= recovery_point), default=0)
            self._suspects |= {s.base_offset for s in self._segments if s.base_offset >= start}
        may_have_gaps = self._config.is_compacted or cleaned_before is not None
        self._verify_suspects(None if may_have_gaps else recovery_point)
        if not self._segments:
            self._segments = [self._create_segment(log_start_offset)]
        log_start_offset = max(log_start_offset, self._segments[0].base_offset)
        log_end_offset = self._end_offset()
        if log_end_offset < log_start_offset:
            log_end_offset = self._start_over(log_start_offset)
        self._finish_epochs(log_start_offset, log_end_offset)
        self._rebuild_producers(self._segments, log_end_offset)
        self._snapshots.keep_only({segment.base_offset for segment in self._segments})
        return LogParts(
            segments=self._segments,
            epochs=self._epochs,
            producers=self._producers,
            snapshots=self._snapshots,
            log_start_offset=log_start_offset,
            log_end_offset=log_end_offset,
            recovery_point=log_end_offset,
            first_dirty_offset=_first_dirty_offset(cleaned_before, log_start_offset, log_end_offset),
            open_files=self._open_files,
            has_new_segment=self._has_new_segment,
        )

    # ---- files

    def _list_files(self) -> dict[str, int]:
        """Return sizes by name, without the leftovers of an interrupted deletion or replacement."""
        entries = finish_swaps(self._disk, self._directory)
        sizes = {entry.name: entry.size_bytes for entry in entries if not self._is_set_aside(entry)}
        logs = {name.removesuffix(LOG_SUFFIX) for name in sizes if name.endswith(LOG_SUFFIX)}
        for name in list(sizes):
            stem, suffix = os.path.splitext(name)
            is_orphan = suffix in SUFFIXES and stem not in logs
            if is_orphan or suffix in _LEFTOVER_SUFFIXES:
                self._disk.remove(os.path.join(self._directory, name))
                del sizes[name]
        return sizes

    def _is_set_aside(self, entry: DiskEntry) -> bool:
        """Make room for a file that can be rebuilt where a directory or a link to nothing has its name."""
        is_derived = os.path.splitext(entry.name)[1] in _DERIVED_SUFFIXES or entry.name == leader_epochs.FILE_NAME
        if not is_derived or not (entry.is_directory or entry.is_broken_link):
            return False
        path = os.path.join(self._directory, entry.name)
        what = "directory" if entry.is_directory else "link to nothing"
        _log.warning("%s is a %s instead of a file; it is renamed, and the file is rebuilt", path, what)
        target = path + UNEXPECTED_SUFFIX
        while self._disk.exists(target):
            target += UNEXPECTED_SUFFIX
        self._disk.rename(path, target)
        self._set_aside.add(entry.name)
        return True

    def _offsets_of(self, suffix: str) -> list[int]:
        stems = [name.removesuffix(suffix) for name in self._sizes if name.endswith(suffix)]
        return sorted(int(stem) for stem in stems if stem.isdecimal())

    def _open_segment(self, base_offset: int) -> Segment:
        stem = f"{base_offset:020d}"
        size_bytes = self._sizes[stem + LOG_SUFFIX]
        index_bytes = self._sizes.get(stem + offset_index.SUFFIX)
        time_index_bytes = self._sizes.get(stem + time_index.SUFFIX)
        is_complete = stem + transaction_index.SUFFIX not in self._set_aside
        if index_bytes is not None and time_index_bytes is not None and is_complete:
            try:
                segment = self._segment(base_offset, size_bytes, index_bytes, time_index_bytes)
                segment.check_indexes()
                return segment
            except CorruptFileError as error:
                _log.debug("%s; the indexes are rebuilt", error)
        self._suspects.add(base_offset)
        return self._segment(base_offset, size_bytes, 0, 0)

    def _segment(self, base_offset: int, size_bytes: int, index_bytes: int, time_index_bytes: int) -> Segment:
        return Segment(
            self._disk,
            self._directory,
            base_offset,
            self._config,
            self._open_files,
            size_bytes=size_bytes,
            index_bytes=index_bytes,
            time_index_bytes=time_index_bytes,
            created_ms=self._now_ms,
        )

    def _create_segment(self, base_offset: int) -> Segment:
        self._has_new_segment = True
        return Segment.create(self._disk, self._directory, base_offset, self._config, self._open_files, self._now_ms)

    # ---- verification

    def _verify_suspects(self, gapless_from: int | None) -> None:
        gapless_from = gapless_from if self._epochs else None
        state_at: int | None = None  # the offset up to which the producers are known
        for index, segment in enumerate(list(self._segments)):
            if segment.base_offset not in self._suspects:
                continue
            if state_at != segment.base_offset:
                self._rebuild_producers(self._segments[:index], segment.base_offset)
            following = self._segments[index + 1].base_offset if index + 1 < len(self._segments) else None
            self.verified_segments += segment.size_bytes > 0
            verdict = verify_segment(segment, Expectations(self._epochs, gapless_from, following))
            if verdict.is_epoch_unexpected and self._are_epochs_wrong():
                self._forget_epochs()
                gapless_from = None
                verdict = verify_segment(segment, Expectations(self._epochs, gapless_from, following))
            self._refuse_to_lose(segment, verdict)
            rebuild_segment(segment, verdict.good_bytes, self._replay)
            if verdict.problem is not None:
                self._remove_segments_after(index, verdict.problem)
                return
            if following is not None:
                segment.seal()
                self._snapshots.take(self._producers, following)
                state_at = following

    def _are_epochs_wrong(self) -> bool:
        """Return whether it is the leader-epoch-checkpoint that is damaged, and not a batch: the oldest two batches of
        the log contradict it, too, or the first two of the newest segment that needs no verification."""
        trusted = [segment for segment in self._segments if segment.base_offset not in self._suspects]
        try:
            for segment in (self._segments[0], *trusted[-1:]):
                if self._contradict_epochs([header for _, header in islice(segment.headers(), 2)]):
                    return True
        except CorruptBatchError:
            pass
        return False

    def _contradict_epochs(self, headers: Sequence[BatchHeader]) -> bool:
        known = {self._epochs.epoch_of(header.base_offset) for header in headers}
        return len(headers) == 2 and not known & {NO_EPOCH, *(header.leader_epoch for header in headers)}

    def _forget_epochs(self) -> None:
        path = os.path.join(self._directory, leader_epochs.FILE_NAME)
        _log.warning("%s does not match the batches; the file is rebuilt from the log", path)
        self._epochs = LeaderEpochs(self._disk, path, [])

    def _refuse_to_lose(self, segment: Segment, verdict: CheckedSegment) -> None:
        if verdict.problem is not None and self._kept_before is not None and verdict.end_offset < self._kept_before:
            path = os.path.join(self._directory, f"{segment.base_offset:020d}{LOG_SUFFIX}")
            for opened in self._segments:
                opened.close()
            raise DamagedLogError(path, verdict.good_bytes, verdict.end_offset, verdict.problem)

    def _rebuild_producers(self, segments: list[Segment], end_offset: int) -> None:
        rebuild_producers(segments, self._snapshots, self._producers, end_offset, self._now_ms, self._high_watermark)

    def _replay(self, segment: Segment, position: int, header: BatchHeader) -> None:
        if header.producer_id >= 0:
            aborted = replay_batch(self._producers, segment, position, header, self._now_ms)
            if aborted is not None:
                segment.transaction_index.add(aborted)

    def files_to_sync(self) -> list[Syncable]:
        """Return the verified files, which may be in memory only, and their directory."""
        if not self._suspects:
            return []
        verified = (segment for segment in self._segments if segment.base_offset in self._suspects)
        files: list[Syncable] = [_SegmentSync(segment) for segment in verified]
        return [*files, DirectorySync(self._disk, self._directory)]

    def _remove_segments_after(self, index: int, problem: str) -> None:
        """Remove everything after the segment at `index`, the newest first: a log cannot be served with a gap."""
        lost = self._segments[index + 1 :]
        self.was_cut = True
        _log.warning("%s; the log is truncated there, %d later segments are removed", problem, len(lost))
        for segment in reversed(lost):
            for path in segment.mark_deleted():
                self._disk.remove(path)
        del self._segments[index + 1 :]

    # ---- state derived from the batches

    def _end_offset(self) -> int:
        """Return the end offset. The last batches are read for it, so they are compared with the leader epochs, which
        have no checksum: after a clean shutdown nothing else does."""
        last: deque[BatchHeader] = deque(maxlen=2)
        end_offset = self._segments[-1].open_for_append(last.append)
        is_only_one = len(last) == 1 and self._contradict_epochs([last[0], last[0]])
        if self._contradict_epochs(last) or (is_only_one and self._are_epochs_wrong()):
            self._forget_epochs()
        return end_offset

    def _start_over(self, log_start_offset: int) -> int:
        """Start the log over at the log start offset that readers expect, because everything from there on is lost."""
        _log.warning("%s ends before its start offset %d and starts over there", self._directory, log_start_offset)
        self._remove_segments_after(-1, f"{self._directory} holds nothing from its start offset {log_start_offset} on")
        self._segments = [self._create_segment(log_start_offset)]
        return log_start_offset

    def _load_epochs(self) -> LeaderEpochs:
        path = os.path.join(self._directory, leader_epochs.FILE_NAME)
        try:
            return LeaderEpochs.load(self._disk, path)
        except CorruptFileError as error:
            _log.warning("%s; the file is rebuilt from the log", error)
            return LeaderEpochs(self._disk, path, [])

    def _finish_epochs(self, log_start_offset: int, log_end_offset: int) -> None:
        if self._epochs:
            self._epochs.truncate_from_end(log_end_offset)
        elif log_end_offset > log_start_offset:
            self._epochs.replace(_epochs_in(self._segments))
        self._epochs.truncate_from_start(log_start_offset)


class _SegmentSync:
    """The files of a segment, which are opened when they are synced: a log may have thousands of segments."""

    __slots__ = ("_segment",)

    def __init__(self, segment: Segment) -> None:
        self._segment = segment

    def sync(self) -> None:
        for file in self._segment.all_files():
            file.sync()


def _first_dirty_offset(cleaned_before: int | None, log_start_offset: int, log_end_offset: int) -> int:
    """Return the checkpointed offset, unless it is impossible for this log."""
    if cleaned_before is not None and log_start_offset <= cleaned_before <= log_end_offset:
        return cleaned_before
    return log_start_offset


def _epochs_in(segments: Iterable[Segment]) -> list[tuple[int, int]]:
    entries: list[tuple[int, int]] = []
    latest = NO_EPOCH
    for segment in segments:
        for _, header in segment.headers():
            if header.leader_epoch > latest:
                latest = header.leader_epoch
                entries.append((latest, header.base_offset))
    return entries
