"""Write snapshots of the committed metadata from time to time, and delete the part of the log that they replace.

    metadata.log.max.record.bytes.between.snapshots   number of new bytes after which a snapshot is due
    metadata.log.max.snapshot.interval.ms             time after which a snapshot is due, if there are new records
    metadata.max.retention.bytes, .ms                 older segments and snapshots are deleted, never the newest one

Each node writes its own snapshots. A snapshot is written batch by batch, so that the event loop runs in between, into a
temporary file. The file gets its name when it is complete and on the disk: see metadata_log.
"""

import asyncio
import logging
from collections.abc import Callable

from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.image_records import image_records
from sskafka.model.settings import Settings
from sskafka.quorum.committed_metadata import CommittedMetadata
from sskafka.quorum.metadata_log import MetadataLog
from sskafka.quorum.snapshots import snapshot_batches
from sskafka.raft.log_view import SnapshotId
from sskafka.raft.ready import SnapshotChunk
from sskafka.runtime.clock import Clock
from sskafka.storage.errors import LogDirectoryError, StorageError

_log = logging.getLogger(__name__)

CHECK_INTERVAL_S = 60.0


class SnapshotWriter:
    def __init__(
        self,
        log: MetadataLog,
        committed: CommittedMetadata,
        settings: Settings,
        clock: Clock,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._log = log
        self._committed = committed
        self._clock = clock
        self._bytes_max = settings["metadata.log.max.record.bytes.between.snapshots"]
        self._interval_ms = settings["metadata.log.max.snapshot.interval.ms"]
        self._retention_bytes = settings["metadata.max.retention.bytes"]
        self._retention_ms = settings["metadata.max.retention.ms"]
        self._loop = asyncio.get_running_loop()
        self._taken_ms = clock.monotonic_ms()
        self._bytes_then = 0
        self._is_stopped = False
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._on_failure = on_failure

    def start(self) -> None:
        self._committed.subscribe(self._changed)
        self._check_again()

    async def stop(self) -> None:
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _changed(self, delta: MetadataDelta, image: ClusterImage) -> None:
        if self._committed.replayed_bytes - self._bytes_then >= self._bytes_max:
            self._begin()

    def _check_again(self) -> None:
        """Check by time as well, because there is no call while the metadata does not change."""
        is_due = 0 < self._interval_ms <= self._clock.monotonic_ms() - self._taken_ms
        if is_due and self._committed.replayed_bytes > self._bytes_then:
            self._begin()
        self._timer = self._loop.call_later(CHECK_INTERVAL_S, self._check_again)

    def _begin(self) -> None:
        if self._is_stopped or (self._task is not None and not self._task.done()):
            return
        self._taken_ms = self._clock.monotonic_ms()
        self._bytes_then = self._committed.replayed_bytes
        self._task = self._loop.create_task(self._write(self._committed.image))

    async def _write(self, image: ClusterImage) -> None:
        """Write a snapshot. If the disk is full, try again later; until then the log keeps everything."""
        try:
            snapshot_id = self._log.snapshot_id_at(image.next_offset)
            if snapshot_id in self._log.snapshots or self._committed.in_transaction:
                return
            await self._write_batches(snapshot_id, image)
            if snapshot_id.offset >= self._log.start_offset:
                self._log.finish_snapshot(snapshot_id)
                _log.info("wrote a snapshot of the metadata up to offset %d", snapshot_id.offset)
                self._trim()
        except LogDirectoryError as error:
            self._on_failure(error)
        except StorageError as error:
            _log.warning("no snapshot of the metadata could be written: %s", error)
        except Exception:  # task boundary: the log keeps everything, and the next snapshot may succeed
            _log.exception("no snapshot of the metadata could be written")

    async def _write_batches(self, snapshot_id: SnapshotId, image: ClusterImage) -> None:
        batches = snapshot_batches(
            image_records(image),
            image.metadata_version,
            self._log.setup,
            snapshot_id.epoch,
            self._committed.last_record_ms,
            self._clock.now_ms(),
        )
        position = 0
        for batch in batches:
            self._log.write_chunk(SnapshotChunk(snapshot_id, position, batch))
            position += len(batch)
            await asyncio.sleep(0)

    # ---- retention

    def _trim(self) -> None:
        while (following := self._next_oldest()) is not None:
            self._log.trim_to(following)

    def _next_oldest(self) -> SnapshotId | None:
        """Return the snapshot that will be the oldest one after deletion, or None if nothing is to be deleted."""
        if len(self._log.snapshots) < 2:
            return None
        oldest, following, *_ = sorted(self._log.snapshots)
        size_bytes = self._log.log.size_bytes + sum(self._log.snapshots.values())
        is_too_large = 0 <= self._retention_bytes < size_bytes
        age_ms = self._clock.now_ms() - self._log.snapshot_time_ms(oldest)
        is_too_old = 0 <= self._retention_ms < age_ms
        return following if is_too_large or is_too_old else None
