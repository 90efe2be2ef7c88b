"""Programs that are run by the path of their environment's Python, in an environment that says nothing of it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from sskafka.pipelines.java import find_java

JOB = Path(__file__).with_name("plain_job.py")


def run_job(preparation: str, bootstrap: str, topic: str, home: Path) -> "subprocess.CompletedProcess[str]":
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "JAVA_HOME": str(find_java().home)}
    command = [sys.executable, str(JOB), preparation, bootstrap, topic]
    return subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, timeout=240, check=False)


def test_workers_find_the_connector_without_an_activated_environment(
    bootstrap: str, new_topic: Callable[..., str], produce: Callable[..., None], tmp_path: Path
) -> None:
    topic = new_topic(1)
    produce(topic, [b"one", b"two"])
    done = run_job("use_this_python", bootstrap, topic, tmp_path)
    assert done.returncode == 0, done.stderr[-2_000:]
    assert "values: one two" in done.stdout


def test_workers_of_another_python_are_refused_with_what_to_set(
    bootstrap: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    done = run_job("register", bootstrap, new_topic(1), tmp_path)
    assert done.returncode == 0, done.stderr[-2_000:]
    assert "refused: Spark's Python workers run python3" in done.stdout
    assert f"Set the environment variable PYSPARK_PYTHON={sys.executable} before the program starts" in done.stdout
