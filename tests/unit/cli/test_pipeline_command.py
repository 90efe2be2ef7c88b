import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sskafka import Broker
from sskafka.cli.commands import app
from sskafka.cli.pipeline import connecting as pipeline_connecting
from sskafka.client.admin import Admin, NewTopic
from sskafka.client.config import ConnectionConfig
from sskafka.model.pipeline_events import Event, EventType
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.runner.events import EventLog

NOBODY = "127.0.0.1:9"


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["pipeline", *arguments])
    return result.exit_code, result.output


def test_a_mistake_in_a_file_is_told_with_its_line_before_anything_is_started(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("name: bad\nsources:\n  a: {topic: a, format: jsn}\nsinks: [{console: {}}]\n")
    code, said = invoke("run", str(file), "-b", NOBODY)
    assert code == 1
    assert f"{file}:3:25: sources.a.format: 'jsn' is not possible; did you mean json?" in said


def test_a_file_that_is_not_there() -> None:
    code, said = invoke("plan", "nowhere.yaml", "-b", NOBODY)
    assert code == 1
    assert "there is no file nowhere.yaml" in said


def test_brokers_that_are_down_are_told_before_spark_starts(tmp_path: Path) -> None:
    file = tmp_path / "good.yaml"
    file.write_text("name: good\nsources:\n  a: {topic: a, format: text}\nsinks: [{console: {}}]\n")
    code, said = invoke("run", str(file), "-b", NOBODY)
    assert code == 1
    assert "cannot connect to 127.0.0.1:9" in said
    assert "Spark" not in said


GOOD = "name: good\nsources:\n  a: {topic: a, format: text}\nsinks: [{parquet: {path: out}}]\ncheckpoint: state\n"


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker({"offsets.topic.num.partitions": 1}) as broker:
        yield broker.bootstrap_servers


def test_a_reset_is_a_dry_run_unless_told_otherwise(tmp_path: Path, bootstrap: str) -> None:
    file = tmp_path / "good.yaml"
    file.write_text(GOOD)
    assert "has no progress" in invoke("reset", str(file), "-b", bootstrap)[1]
    (tmp_path / "state" / "parquet").mkdir(parents=True)
    (tmp_path / "out" / "_spark_metadata").mkdir(parents=True)
    (tmp_path / "out" / "part-0.parquet").touch()
    told = invoke("reset", str(file), "-b", bootstrap)[1]
    assert "would delete the checkpoint" in told
    assert "would move" in told
    assert (tmp_path / "state").exists()
    assert invoke("reset", str(file), "--execute", "-b", bootstrap)[0] == 0
    assert not (tmp_path / "state").exists()
    assert not (tmp_path / "out").exists()
    assert len(list(tmp_path.glob("out-before-*/part-0.parquet"))) == 1, "what was written is kept"


def test_a_pipeline_that_runs_is_not_reset(tmp_path: Path, bootstrap: str) -> None:
    file = tmp_path / "good.yaml"
    file.write_text(GOOD)
    with ClusterSession(bootstrap, ConnectionConfig()) as session:
        log = EventLog(session, bootstrap)
        log.create()
        log.append(Event("good", "r1", EventType.STARTED, int(time.time() * 1000)))
        code, told = invoke("reset", str(file), "--execute", "-b", bootstrap)
        log.append(Event("good", "r1", EventType.STOPPED, int(time.time() * 1000)))
    assert code == 1
    assert "good is running" in told
    assert "sskafka pipeline stop good" in told


def test_names_and_places_of_one_run_are_those_of_every_command(tmp_path: Path, bootstrap: str) -> None:
    (tmp_path / "other" / "_spark_metadata").mkdir(parents=True)
    file = tmp_path / "good.yaml"
    file.write_text(GOOD)
    _, told = invoke("reset", str(file), "--name", "another", "--to", f"parquet={tmp_path}/other", "-b", bootstrap)
    assert f"would move {tmp_path}/other to" in told


def test_secrets_in_paths_are_not_shown(tmp_path: Path, bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("key", "hunter22")
    file = tmp_path / "a.yaml"
    text = "name: a\nsources:\n  t: {topic: t, format: raw}\ncheckpoint: hdfs://u:${secret:key}@h/c\n"
    file.write_text(text + "sinks: [{parquet: {path: 's3a://k:${secret:key}@bucket/out'}}]\n")
    with ClusterSession(bootstrap, ConnectionConfig()) as session:
        session.run(Admin(session.cluster).create_topics([NewTopic("t")]))
    plan = ("plan", "--no-spark", str(file), "-b", bootstrap)
    for command in (("list", str(tmp_path)), plan, (*plan, "--format", "json"), ("reset", str(file), "-b", bootstrap)):
        _, said = invoke(*command)
        assert "********@" in said, command
        assert "hunter22" not in said, command


def test_pipelines_are_listed_and_bad_files_named(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("name: a\nsources:\n  t: {pattern: t-.*, format: raw}\nsinks: [{console: {}}]\n")
    (tmp_path / "b.yaml").write_text("name: B\n")
    _, said = invoke("list", str(tmp_path))
    assert "t-.*" in said
    assert "b.yaml:1:7: name" in said


@pytest.mark.parametrize("command", [("list",), ("status", "-b", NOBODY), ("run", "sessions", "-b", NOBODY)])
def test_without_the_extra_it_is_said_what_to_install(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline_connecting, "find_spec", lambda name: None)
    code, said = invoke(*command)
    assert code == 1
    assert "pipelines need pyarrow" in said
    assert "pip install 'sskafka[spark]'" in said


def test_the_program_for_spark_submit_is_run_with_the_arguments_of_a_run(tmp_path: Path) -> None:
    code, text = invoke("script")
    assert code == 0
    program = text.strip()
    done = subprocess.run(
        [sys.executable, program, "no-such-file.yaml"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: there is no file no-such-file.yaml")
