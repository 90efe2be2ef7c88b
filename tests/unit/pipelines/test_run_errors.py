"""What went wrong in a run, in one sentence, with the place in the user's own code."""

import threading
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sskafka.pipelines.files.pipeline import load_pipeline
from sskafka.pipelines.files.transform import PythonTransform
from sskafka.pipelines.runner import backfill, spark_failures
from sskafka.pipelines.runner import run as runner
from sskafka.pipelines.runner.backfill import run_backfill
from sskafka.pipelines.runner.backfill_range import parse_range
from sskafka.pipelines.runner.errors import PipelineRunError, explained, run_error
from sskafka.pipelines.runner.reporting import RunReporter
from sskafka.pipelines.runner.retries import is_transient
from sskafka.pipelines.runner.run import RunSettings, _Run, run_pipeline
from sskafka.pipelines.runner.spark_failures import reporting_spark_failures
from sskafka.pipelines.runner.transforming import TransformError, _function
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


def test_a_file_of_the_user_that_cannot_be_imported_is_named_with_its_line(tmp_path: Path) -> None:
    """`pipeline test` once ended with a traceback."""
    (tmp_path / "a.yaml").write_text(
        "name: a\nsources:\n  a: {topic: a, format: text}\nsinks: [{topic: {topic: out}}]\n"
    )
    (tmp_path / "prices_broken.py").write_text("import os\nRATES = missing\n\ndef f(spark, tables):\n    return None\n")
    spark: Any = SimpleNamespace(addArtifacts=lambda *_, **__: None)
    where = r"prices_broken\.py cannot be imported: prices_broken\.py:2, in <module>: NameError"
    with pytest.raises(TransformError, match=where):
        _function(spark, load_pipeline(tmp_path / "a.yaml"), PythonTransform("prices_broken.py", "f"))


def test_an_error_of_spark_alone_names_no_file() -> None:
    assert explained(RuntimeError("[PARSE] no\nCaused by: java.lang.IllegalStateException: broken")) == "broken"


TASK = (
    "Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure: Lost task 0.0 in stage "
    "1.0 (TID 1) (localhost executor driver): "
)
CRASHED = "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed). Consider setting 'x'."
QUERY = "\n=== Streaming Query ===\nIdentifier: [id = 4f604b79, runId = 325c3f4a]\n"
FAILED = "[STREAM_FAILED] Query [id = 5, runId = 7] terminated with exception: "
BY_JAVA = """\
Traceback (most recent call last):
  File "/usr/lib/python3.11/site-packages/pyspark/worker.py", line 1876, in main
    outfile.flush()
BrokenPipeError: [Errno 32] Broken pipe
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"Broken pipe{QUERY}", "Broken pipe"),
        (f"{FAILED}Connection reset SQLSTATE: XXKST{QUERY}", "Connection reset"),
        (
            f"{TASK}{CRASHED}\n\tat org.apache.spark.X\nCaused by: java.io.EOFException\n\tat java.io.Y\n{QUERY}",
            "Python worker exited unexpectedly (crashed)",
        ),
        (f"{TASK}java.io.IOException: Stream closed\n\tat java.lang.ProcessBuilder\n{QUERY}", "Stream closed"),
        (BY_JAVA, "BrokenPipeError: [Errno 32] Broken pipe"),
    ],
)
def test_a_python_process_that_died_is_named_with_the_next_step(text: str, reason: str) -> None:
    """These are the texts of Spark 4.3 when a process is killed; the first one was once all that a run said."""
    error = run_error(RuntimeError(text), "topic: ")
    assert str(error) == f"topic: a Python process of Spark was killed or has crashed ({reason})"
    assert error.hint.startswith("run the pipeline again: it continues at its checkpoint; `dmesg` shows")
    assert is_transient(RuntimeError(text))


def test_a_process_that_died_amid_a_request_is_named_by_the_class_of_the_cause() -> None:
    """Java's EOFException has no message; pyspark has its class in another exception."""
    error: Any = RuntimeError(f"{FAILED} SQLSTATE: XXKST (no cause message){QUERY}")
    assert explained(error) == "Spark names no reason"
    error._cause = SimpleNamespace(_desc="java.io.EOFException")
    assert explained(error) == "a Python process of Spark was killed or has crashed (java.io.EOFException)"
    assert is_transient(error)


def test_a_connection_that_the_user_s_function_lost_is_the_user_s() -> None:
    text = WORKER.replace("KeyError: 'NO'", "ConnectionResetError: [Errno 104] Connection reset by peer")
    error = run_error(RuntimeError(text))
    assert str(error) == "ConnectionResetError: [Errno 104] Connection reset by peer (prices.py:12, in with_tax)"
    assert not is_transient(RuntimeError(text))


@pytest.mark.parametrize(
    "text",
    [
        "sskafka.client.errors.ConnectionLostError: the connection to b:9092 was lost: Connection reset by peer",
        "java.sql.SQLException: Socket closed",
    ],
)
def test_a_connection_of_others_is_not_that_of_a_process(text: str) -> None:
    error = run_error(RuntimeError(f"[X] no\nCaused by: {text}"))
    assert str(error) == text.partition(": ")[2]
    assert ("`sskafka cluster status` shows which brokers are up" in error.hint) is text.startswith("sskafka.")


def test_the_failure_of_a_task_is_told_without_its_number() -> None:
    assert explained(RuntimeError(f"{TASK}java.lang.IllegalStateException: no such key\n\tat x")) == "no such key"


class Py4JNetworkError(Exception):
    """The name of py4j's error; it is not installed everywhere."""


@pytest.mark.parametrize(
    "error", [ConnectionRefusedError(111, "Connection refused"), BrokenPipeError(32, "Broken pipe"), Py4JNetworkError()]
)
@pytest.mark.parametrize(
    ("code", "sentence", "hint"),
    [
        (-9, "the Java process of Spark was ended by signal 9", "again; `dmesg` shows"),
        (3, "the Java process of Spark has exited with code 3", "again"),
        (None, "the connection to the Java process of Spark was lost: ", "again"),
    ],
)
def test_a_call_that_java_does_not_answer(
    error: Exception, code: int | None, sentence: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_failures, "java_exit_code", lambda _: code)
    with pytest.raises(PipelineRunError, match=sentence) as failure, reporting_spark_failures("again"):
        raise error
    assert failure.value.hint.startswith(hint)


def test_java_that_dies_while_spark_starts_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run said `error: Connection refused`."""
    file = tmp_path / "a.yaml"
    file.write_text("name: a\nsources:\n  a: {topic: a, format: text}\nsinks: [{topic: {topic: out}}]\n")

    def refused(*_: object) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    for module in (runner, backfill):
        monkeypatch.setattr(module, "start_session", refused)
        monkeypatch.setattr(module, "RunReporter", lambda *_: nullcontext())
    for name in ("launch_java_early", "prepare_topics", "recover_topics"):
        monkeypatch.setattr(runner, name, lambda *_: None)
    monkeypatch.setattr(runner, "ClusterSession", lambda *_: nullcontext())
    monkeypatch.setattr(backfill._Backfill, "_prepare", lambda *_: None)
    monkeypatch.setattr(spark_failures, "java_exit_code", lambda _: -9)
    pipeline, settings = load_pipeline(file), RunSettings("localhost:1")
    with pytest.raises(PipelineRunError, match="the Java process of Spark was ended by signal 9"):
        run_pipeline(pipeline, settings)
    with pytest.raises(PipelineRunError, match="the Java process of Spark was ended by signal 9"):
        run_backfill(pipeline, parse_range("earliest", ""), settings)


def test_java_that_does_not_start_and_errors_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_failures, "java_exit_code", lambda _: None)
    with pytest.raises(PipelineRunError, match="Java has ended before Spark was started"), reporting_spark_failures():
        raise RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.")
    with pytest.raises(ValueError, match="mine") as mine, reporting_spark_failures():
        raise ValueError("mine")
    assert mine.value.__cause__ is None


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
