"""Metrics of the log cleaner, under the names of Kafka's LogCleaner and LogCleanerManager."""

from collections import Counter
from collections.abc import Iterator, Sequence

from sskafka.model.counters import Sample
from sskafka.runtime.clock import Clock
from sskafka.storage.compaction.cleanable import CleanableLog
from sskafka.storage.compaction.cleaning_job import CleaningStats
from sskafka.storage.log import Log


class CleanerMetrics:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_run_ms = clock.monotonic_ms()
        self._max_dirty_ratio = 0.0
        self._last: CleaningStats | None = None
        self._uncleanable: dict[Log, str] = {}

    @property
    def uncleanable(self) -> dict[Log, str]:
        """Logs that are no longer cleaned, with the reason. Closed logs are dropped."""
        for log in [log for log in self._uncleanable if not log.is_in_service]:
            del self._uncleanable[log]
        return self._uncleanable

    def looked_at(self, cleanable: Sequence[CleanableLog]) -> None:
        self._last_run_ms = self._clock.monotonic_ms()
        self._max_dirty_ratio = max((one.dirty_ratio for one in cleanable), default=0.0)

    def cleaned(self, stats: CleaningStats) -> None:
        self._last = stats

    def samples(self) -> Iterator[Sample]:
        manager = "kafka_log_logcleanermanager_"
        directories = Counter(log.log_directory.path for log in self.uncleanable)
        sizes: Counter[str] = Counter()
        for log in self.uncleanable:
            sizes[log.log_directory.path] += log.size_bytes
        for path in directories:
            labels = (("logDirectory", path),)
            yield Sample(manager + "uncleanable_partitions_count", labels, directories[path])
            yield Sample(manager + "uncleanable_bytes", labels, sizes[path])
        yield Sample(manager + "max_dirty_percent", (), 100 * self._max_dirty_ratio)
        yield Sample(manager + "time_since_last_run_ms", (), self._clock.monotonic_ms() - self._last_run_ms)
        yield from self._last_cleaning()

    def _last_cleaning(self) -> Iterator[Sample]:
        cleaner, last = "kafka_log_logcleaner_", self._last
        if last is not None:
            recopied = 100 * last.bytes_written / max(last.bytes_read, 1)
            yield Sample(cleaner + "max_buffer_utilization_percent", (), 100 * last.map_utilization)
            yield Sample(cleaner + "cleaner_recopy_percent", (), recopied)
            yield Sample(cleaner + "max_clean_time_secs", (), last.seconds)
