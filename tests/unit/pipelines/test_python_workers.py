"""Which Python Spark's workers run, and what is said where it lacks the connector."""

import os
import sys
from pathlib import Path

import pytest

from sskafka.pipelines.python_workers import WorkerPythonError, check_python, use_this_python


def test_this_python_is_taken_unless_the_environment_names_another(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, "")  # so that it is put back afterwards
        monkeypatch.delenv(name)
    use_this_python()
    assert os.environ["PYSPARK_PYTHON"] == os.environ["PYSPARK_DRIVER_PYTHON"] == sys.executable
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    use_this_python()
    assert os.environ["PYSPARK_PYTHON"] == "/opt/python"


def test_a_python_without_the_connector_is_named_with_what_to_set(tmp_path: Path) -> None:
    check_python(sys.executable)
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\nexit 1\n")
    other.chmod(0o755)
    with pytest.raises(
        WorkerPythonError, match=f"run {other}, which has no sskafka. Set .*PYSPARK_PYTHON={sys.executable}"
    ):
        check_python(str(other))
    with pytest.raises(WorkerPythonError, match="which does not exist"):
        check_python(str(tmp_path / "nothing"))
