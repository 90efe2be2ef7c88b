"""What went wrong in a run, in one sentence, with the place in the user's own code."""

import threading
from pathlib import Path
from typing import Any

import pytest

from sskafka.pipelines.files.pipeline import load_pipeline
from sskafka.pipelines.runner.errors import PipelineRunError, explained
from sskafka.pipelines.runner.reporting import RunReporter
from sskafka.pipelines.runner.run import _Run
from sskafka.pipelines.spark_log import VARIABLE, prepare_log, written_log

WORKER = """\
[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted due to stage failure:
Traceback (most recent call last):
  File "/usr/lib/python3.11/site-packages/pyspark/worker.py", line 1876, in main
    process()
  File "/home/me/shop/prices.py", line 12, in with_tax
    return amount * RATES[country]
  File "/usr/lib/python3.11/site-packages/pandas/core/frame.py", line 7, in get
    raise KeyError(key)
KeyError: 'NO'
"""


def test_an_error_in_the_user_s_function_names_its_file_and_line() -> None:
    assert explained(RuntimeError(WORKER)) == "KeyError: 'NO' (prices.py:12, in with_tax)"


def test_an_error_of_spark_alone_names_no_file() -> None:
    assert explained(RuntimeError("[PARSE] no\nCaused by: java.lang.IllegalStateException: broken")) == "broken"


def test_the_log_is_named_when_spark_has_written_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "spark.log"
    monkeypatch.setenv(VARIABLE, str(log))
    prepare_log()
    assert written_log() is None
    assert PipelineRunError("it failed").hint == ""
    log.write_text("java.lang.Exception\n")
    assert PipelineRunError("it failed").hint == f"Spark's log {log} has the details"
    assert PipelineRunError("it failed", "try again").hint == "try again"


def test_a_run_that_was_replaced_while_spark_started_has_not_ended_well(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("name: a\nsources:\n  a: {topic: a, format: text}\nsinks: [{topic: {topic: out}}]\n")
    pipeline, stop = load_pipeline(file), threading.Event()
    reporter = RunReporter(pipeline, "localhost:1", "older", stop, lambda _: None)
    no_spark: Any = None
    run = _Run(pipeline, "localhost:1", no_spark, reporter, stop)
    stop.set()
    assert run.go("older", lambda _: None, lambda _: None).queries == []  # a stop was requested
    reporter.taken_over_by = "newer"
    with pytest.raises(PipelineRunError, match="run newer of the same pipeline has taken over"):
        run.go("older", lambda _: None, lambda _: None)
