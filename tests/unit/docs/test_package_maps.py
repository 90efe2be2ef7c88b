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


def test_the_tree_of_folders_is_whole() -> None:
    page = (SOURCE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    tree = page.partition("```")[2].partition("```")[0]
    for path in SOURCE.iterdir():
        if path.is_dir() and path.name != "__pycache__":
            assert f" {path.name}/" in tree, f"{path.name}/ is missing"
    for path in (SOURCE.parents[1] / "tests").iterdir():
        assert not (path.is_dir() and any(path.glob("test_*.py"))) or f" {path.name}/" in tree, f"tests/{path.name}"


@pytest.mark.parametrize("package", MAPS, ids=str)
def test_modules_that_a_package_names_are_there(package: Path) -> None:
    text = MAPS[package]
    named = [*re.findall(r"`([a-z_]+)/?`", text), *re.findall(r"^\s*([a-z_]+)\.py\b", text, re.MULTILINE)]
    there = {path.stem for path in (SOURCE / package).iterdir()}
    assert [name for name in named if name not in there | OTHER_WORDS] == []
