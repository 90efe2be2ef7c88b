"""Metrics of the log cleaner."""

from compacting import compact, put
from logs import NOW_MS, reopen
from simulated_disk import SimulatedDisk
from virtual_time import VirtualTime

from sskafka.replication.log_cleaner import CleanerMetrics
from sskafka.storage.compaction.cleanable import find_cleanable
from sskafka.storage.log import Log
from sskafka.storage.log_config import LogConfig


def dirty_log() -> Log:
    log = reopen(SimulatedDisk(), LogConfig(cleanup_policy=("compact",), segment_bytes=200))
    for n in range(10):
        put(log, (b"k", b"%d" % n), now_ms=NOW_MS)
    return log


def told(metrics: CleanerMetrics) -> dict[str, float]:
    return {sample.name.removeprefix("kafka_log_"): sample.value for sample in metrics.samples()}


def test_the_dirtiest_log_and_the_last_look() -> None:
    time = VirtualTime()
    metrics = CleanerMetrics(time)
    metrics.checked([find_cleanable(dirty_log(), 10, NOW_MS)])
    time.run_for(250)
    samples = told(metrics)
    assert samples["logcleanermanager_max_dirty_percent"] == 100
    assert samples["logcleanermanager_time_since_last_run_seconds"] == 0.25


def test_the_last_cleaning() -> None:
    metrics = CleanerMetrics(VirtualTime())
    stats = compact(dirty_log(), NOW_MS)
    assert stats is not None
    metrics.cleaned(stats)
    samples = told(metrics)
    assert 0 < samples["logcleaner_cleaner_recopy_percent"] < 100
    assert 0 < samples["logcleaner_max_buffer_utilization_percent"] < 90


def test_logs_that_are_left_alone_are_counted_until_they_are_gone() -> None:
    metrics, log = CleanerMetrics(VirtualTime()), dirty_log()
    metrics.uncleanable[log] = "a corrupt batch"
    (sample,) = [one for one in metrics.samples() if one.name.endswith("uncleanable_partitions_count")]
    assert (sample.labels, sample.value) == ((("logdirectory", "/data"),), 1)
    assert told(metrics)["logcleanermanager_uncleanable_bytes"] == log.size_bytes
    log.abandon()
    assert "logcleanermanager_uncleanable_partitions_count" not in told(metrics)
