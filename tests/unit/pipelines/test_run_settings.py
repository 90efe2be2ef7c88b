"""What a run sets before Spark starts, and keeps from it."""

import signal
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from sskafka.pipelines.files.pipeline import Pipeline
from sskafka.pipelines.files.sink import ParquetSink
from sskafka.pipelines.files.transform import SqlTransform
from sskafka.pipelines.runner.run import checkpoint_conf, keeping_signal_handlers, stop_queries


def pipeline(path: str, checkpoint: str = "") -> Pipeline:
    sinks = (ParquetSink("parquet", path),)
    return Pipeline("p", (), sinks, SqlTransform(""), checkpoint=checkpoint, path=Path("p.yaml"))


def test_checkpoints_of_a_local_disk_are_written_without_other_programs() -> None:
    (manager,) = checkpoint_conf(pipeline("out")).values()
    assert manager.endswith(".FileSystemBasedCheckpointFileManager")


def test_elsewhere_spark_knows_best() -> None:
    assert checkpoint_conf(pipeline("s3a://bucket/out")) == {}
    assert checkpoint_conf(pipeline("out", "hdfs://name/checkpoints")) == {}


class Busy:
    """A query whose source does not see the pause file: batch follows batch."""

    status = MappingProxyType({"isTriggerActive": True})

    def __init__(self) -> None:
        self.isActive = True
        self.batches = 0
        self.is_stopped = False

    @property
    def lastProgress(self) -> SimpleNamespace:
        self.batches += 1
        return SimpleNamespace(batchId=self.batches)

    def exception(self) -> None:
        return None

    def stop(self) -> None:
        self.is_stopped = True


def test_a_query_that_cannot_be_paused_is_not_waited_for(tmp_path: Path) -> None:
    query: Any = Busy()
    stop_queries([query], tmp_path / "pause")
    assert query.is_stopped
    assert query.batches < 10
    assert (tmp_path / "pause").exists()


def test_ctrl_c_stays_with_whoever_had_it() -> None:
    before = signal.getsignal(signal.SIGINT)
    with keeping_signal_handlers():
        signal.signal(signal.SIGINT, lambda number, frame: None)  # as a Spark context does
    assert signal.getsignal(signal.SIGINT) is before


class Stuck:
    """A query whose batch waits for brokers for longer than Spark waits for its end."""

    name = "shop.topic"

    def __init__(self, error: str) -> None:
        self.isActive = False
        self.lastProgress = None
        self._error = error

    def exception(self) -> Exception | None:
        return None

    def stop(self) -> None:
        raise RuntimeError(self._error)


def test_a_query_that_does_not_stop_in_time_does_not_hide_why_a_run_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    late: Any = Stuck(": java.util.concurrent.TimeoutException: Stream Execution thread failed to stop within 60000 ms")
    stop_queries([late], tmp_path / "pause")
    assert "shop.topic did not stop in time" in caplog.text
    broken: Any = Stuck("Java has gone")
    with pytest.raises(RuntimeError, match="Java has gone"):
        stop_queries([broken], tmp_path / "pause")
