"""What a run sets before Spark starts, and keeps from it."""

import signal
from pathlib import Path

from sskafka.pipelines.files.model import ParquetSink, Pipeline, SqlTransform
from sskafka.pipelines.runner.run import checkpoint_conf, keeping_signal_handlers


def pipeline(path: str, checkpoint: str = "") -> Pipeline:
    sinks = (ParquetSink("parquet", path),)
    return Pipeline("p", (), sinks, SqlTransform(""), checkpoint=checkpoint, path=Path("p.yaml"))


def test_checkpoints_of_a_local_disk_are_written_without_other_programs() -> None:
    (manager,) = checkpoint_conf(pipeline("out")).values()
    assert manager.endswith(".FileSystemBasedCheckpointFileManager")


def test_elsewhere_spark_knows_best() -> None:
    assert checkpoint_conf(pipeline("s3a://bucket/out")) == {}
    assert checkpoint_conf(pipeline("out", "hdfs://name/checkpoints")) == {}


def test_ctrl_c_stays_with_whoever_had_it() -> None:
    before = signal.getsignal(signal.SIGINT)
    with keeping_signal_handlers():
        signal.signal(signal.SIGINT, lambda number, frame: None)  # as a Spark context does
    assert signal.getsignal(signal.SIGINT) is before
