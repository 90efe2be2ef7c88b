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
