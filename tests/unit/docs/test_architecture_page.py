"""The walks of docs/architecture.md stay short, and every question of its last table has one answer."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "architecture.md").read_text(encoding="utf-8")
FILES_MAX = {"Produce": 25, "Fetch": 14, "JoinGroup": 10, "EndTxn": 12}


def section(title: str) -> str:
    found = re.search(rf"^##+ {re.escape(title)}\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, f"there is no section {title!r}"
    return found[1]


def files_in(text: str) -> list[str]:
    return re.findall(r"\]\(\.\./src/sskafka/([a-z_/]+\.py)\)", text)


@pytest.mark.parametrize("walk", FILES_MAX)
def test_a_walk_opens_few_files(walk: str) -> None:
    opened = {file for file in files_in(section(walk)) if not file.startswith("model/")}
    assert 5 < len(opened) <= FILES_MAX[walk], f"{walk}: {len(opened)} files"


def test_each_question_has_one_file_to_start_in() -> None:
    rows = [line for line in section("Where would I change …?").splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 12
    assert [row for row in rows if len(files_in(row)) != 1] == []
