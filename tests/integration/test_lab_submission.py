"""What is handed in names every exercise of the lab, and docs/lab.md shows each with tests that exist."""

import json
import os
import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
EXERCISES = [f"4.{part}.{number}" for part, count in ((1, 7), (2, 9), (3, 9)) for number in range(1, count + 1)]


def rows() -> dict[str, str]:
    lines = (ROOT / "docs" / "lab.md").read_text().splitlines()
    return {line.split()[1]: line for line in lines if re.match(r"\| 4\.\d\.\d ", line)}


def test_every_exercise_is_handed_in() -> None:
    assert json.loads((ROOT / "submission.json").read_text()) == EXERCISES


def test_every_exercise_has_a_row_with_a_test() -> None:
    assert list(rows()) == EXERCISES
    for exercise, row in rows().items():
        assert "test_" in row, exercise


def test_every_test_that_is_named_exists() -> None:
    for row in rows().values():
        module = ""
        for path, test in re.findall(r"`((?:tests/\w+/)?test_\w+|\.\.)(?:::(test_\w+))?`", row):
            module = module if path == ".." else path if "/" in path else f"tests/integration/{path}"
            assert module, row
            text = (ROOT / f"{module}.py").read_text()
            assert not test or f"def {test}(" in text, f"{module} has no {test}"


def test_hosted_ci_runs_what_everybody_can_run() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    commands = [[step["run"] for step in job["steps"] if "run" in step] for job in workflow["jobs"].values()]
    assert [".ci/run"] in commands
    targets = [command.split() for job in commands for command in job if command != ".ci/run"]
    makefile = (ROOT / "Makefile").read_text()
    assert {words[0] for words in targets} == {"make"}
    assert all(f"\n{target}:" in makefile for _, *names in targets for target in names)
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
