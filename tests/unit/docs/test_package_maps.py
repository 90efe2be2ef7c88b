"""Packages say where to start reading; what they name is there."""

import ast
import re
from pathlib import Path

import pytest

OTHER_WORDS = {"detail", "spark"}  # a field and an extra
SOURCE = Path(__file__).resolve().parents[3] / "src" / "sskafka"
MAPS = {
    file.parent.relative_to(SOURCE): text
    for file in sorted(SOURCE.rglob("__init__.py"))
    if file.parent != SOURCE and (text := ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))))
}


@pytest.mark.parametrize("package", MAPS, ids=str)
def test_modules_that_a_package_names_are_there(package: Path) -> None:
    text = MAPS[package]
    named = [*re.findall(r"`([a-z_]+)/?`", text), *re.findall(r"^\s*([a-z_]+)\.py\b", text, re.MULTILINE)]
    there = {path.stem for path in (SOURCE / package).iterdir()}
    assert [name for name in named if name not in there | OTHER_WORDS] == []
