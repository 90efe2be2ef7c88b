"""`sskafka start` without a file, as a process."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SSKAFKA = str(Path(sys.executable).with_name("sskafka"))
TIMEOUT_S = 30


def environment(**extra: str) -> dict[str, str]:
    return {**os.environ, **extra}


@pytest.mark.usefixtures("_ours")
@pytest.mark.parametrize(("stop", "exit_code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_start_without_a_file(tmp_path: Path, stop: signal.Signals, exit_code: int) -> None:
    ports = ("listeners=PLAINTEXT://127.0.0.1:0", "http.listener=127.0.0.1:0", "adr.listener=127.0.0.1:0")
    command = [SSKAFKA, "start", *(word for port in ports for word in ("--set", port))]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment(SSKAFKA_NUM_PARTITIONS="4"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as broker:
        assert broker.stdout is not None
        ready = broker.stdout.readline()
        words = dict(word.split("=", 1) for word in ready.split()[1:])
        assert ready.startswith("READY bootstrap=127.0.0.1:")
        assert words["http"].startswith("127.0.0.1:")
        home = tmp_path / "sskafka-data"
        assert int((home / "broker.pid").read_text()) == broker.pid
        assert (home / "data" / "meta.properties").exists()
        bootstrap = words["bootstrap"]
        made = subprocess.run(
            [SSKAFKA, "topic", "create", "t", "-b", bootstrap],
            capture_output=True,
            text=True,
            check=True,
            timeout=TIMEOUT_S,
        )
        assert made.stdout.splitlines()[1].split()[:2] == ["t", "4"]
        broker.send_signal(stop)
        rest, talk = broker.communicate(timeout=TIMEOUT_S)
        assert broker.returncode == exit_code
        assert rest == ""
        assert "SSKafka" in talk
        assert "Traceback" not in talk
        assert not (home / "broker.pid").exists()
        assert (home / "data" / ".kafka_cleanshutdown").exists()


NOT_AT_START = {
    *("typer", "click", "rich", "pydantic", "fastapi", "starlette", "uvicorn"),  # the command line, the HTTP process
    *("platform", "uuid", "shutil", "difflib", "datetime", "email", "http", "multiprocessing", "importlib.metadata"),
    *("sskafka.metadata.topics", "sskafka.metadata.config_changes", "sskafka.metadata.delegation_tokens"),
}
MODULES_AT_START_MAX = 520
"""Imports are most of the time until READY, and each module takes a quarter of a millisecond."""


@pytest.mark.usefixtures("_ours")
def test_few_modules_are_imported_until_a_broker_is_ready(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"node.id=1\nlisteners=PLAINTEXT://127.0.0.1:0\nlog.dirs={tmp_path / 'data'}\n")
    command = [sys.executable, "-X", "importtime", "-m", "sskafka", "start", str(file)]
    log = tmp_path / "stderr"
    with log.open("wb") as errors, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as broker:
        assert broker.stdout is not None
        ready = broker.stdout.readline()
        broker.terminate()
    talk = log.read_text()
    assert ready.startswith(b"READY "), talk
    until_ready, _, _ = talk.partition("\nSSKafka ")
    lines = [line for line in until_ready.splitlines() if line.startswith("import time:")]
    imported = {line.rpartition("|")[2].strip() for line in lines}
    assert not NOT_AT_START & imported
    assert len(imported) <= MODULES_AT_START_MAX
