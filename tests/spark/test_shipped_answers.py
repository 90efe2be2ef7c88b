"""The self-check of shipped pipelines, by real brokers and real Spark.

Every pipeline's whole answer is checked in test_shipped_runs, over several runs; here it is the command that is tested.
"""

from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from sskafka.cli.commands import app
from sskafka.pipelines.shipped import latest
from sskafka.pipelines.shipped.exercise import Exercise, Task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_an_answer_that_is_the_known_one_and_one_that_is_not(
    spark: "SparkSession", bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["pipeline", "check", "latest", "-n", "100", "--master", "local[2]", "-b", bootstrap]
    good = CliRunner().invoke(app, command)
    assert good.exit_code == 0, good.output
    assert "latest: every row is as expected" in good.stdout

    made = latest.exercise

    def with_one_more(task: Task) -> Exercise:
        exercise = made(task)
        return Exercise(exercise.messages, [*exercise.expected, ("nobody", "nothing")], exercise.found)

    monkeypatch.setattr(latest, "exercise", with_one_more)
    bad = CliRunner().invoke(app, command)
    assert bad.exit_code == 1
    assert "missing: nobody, nothing" in bad.stdout
    assert "wrong result of latest" in bad.output
