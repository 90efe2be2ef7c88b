"""Compiled modules are used while their sources are the ones they were compiled from, and never after that."""

import ast
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from sskafka import compiled

ROOT = Path(__file__).resolve().parents[2]
SUFFIX = EXTENSION_SUFFIXES[0]
REPORT = "import sskafka.compiled as c, sskafka.part as p; print(c.IS_COMPILED, c.BUILD); print(p.__file__)"

Checkout = Callable[[bool], Path]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A package with one module beside an extension of the same name, which cannot be loaded, and with a stamp."""

    def make(notes_sources: bool) -> Path:
        package = tmp_path / "sskafka"
        package.mkdir()
        (package / "__init__.py").write_text("import sskafka.compiled\n")
        (package / "compiled.py").write_bytes(Path(compiled.__file__).read_bytes())
        part = package / "part.py"
        part.write_text("text = 'source'\n")
        (package / f"part{SUFFIX}").write_bytes(b"not a library")
        lines = ["mypyc 0", "module\tpart.py"]
        if notes_sources:
            found = part.stat()
            lines.append(f"source\tpart.py\t{found.st_size}\t{found.st_mtime_ns}\t{compiled._digest(str(part))}")
        Path(compiled.stamp_path(str(package))).write_text("\n".join(lines) + "\n")
        return tmp_path

    return make


def run(root: Path, code: str = REPORT, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(root), **variables}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=root, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("notes_sources", [False, True], ids=["wheel", "checkout"])
def test_fresh_modules_are_used(checkout: Checkout, notes_sources: bool) -> None:
    root = checkout(notes_sources)
    assert run(root, "import sskafka.compiled as c; print(c.BUILD)").stdout == "compiled by mypyc 0\n"
    assert "ImportError" in run(root).stderr  # it tried to load the extension


def test_an_edited_source_is_used(checkout: Checkout) -> None:
    root = checkout(True)
    (root / "sskafka/part.py").write_text("text = 'edited'\n")
    found = run(root)
    assert found.stdout.splitlines() == [
        "False pure Python: part.py has changed since `make compile`",
        str(root / "sskafka/part.py"),
    ]
    assert found.stderr.splitlines() == [
        "sskafka: part.py has changed since `make compile`: the compiled modules are ignored until it is run again"
    ]


def test_a_removed_source_makes_the_modules_stale(checkout: Checkout) -> None:
    root = checkout(True)
    (root / "sskafka/part.py").unlink()
    assert "part.py has changed" in run(root, "import sskafka").stderr


def test_the_same_content_with_another_time_is_no_change(checkout: Checkout) -> None:
    root = checkout(True)
    os.utime(root / "sskafka/part.py", ns=(1, 1))
    assert run(root, "import sskafka.compiled as c; print(c.IS_COMPILED)").stdout == "True\n"


def test_a_variable_selects_the_source(checkout: Checkout) -> None:
    root = checkout(True)
    found = run(root, SSKAFKA_PURE="1")
    assert found.stdout.splitlines() == [
        "False pure Python, because SSKAFKA_PURE is set",
        str(root / "sskafka/part.py"),
    ]
    assert not found.stderr


def test_a_stamp_of_another_interpreter_is_not_read(checkout: Checkout) -> None:
    root = checkout(True)
    stamp = Path(compiled.stamp_path(str(root / "sskafka")))
    stamp.rename(stamp.with_name("compiled.cpython-399.so.stamp"))
    assert run(root, "import sskafka.compiled as c; print(c.BUILD)").stdout == "pure Python\n"


def test_the_stamp_of_a_build_is_the_one_that_is_read() -> None:
    """The two files cannot import each other: the build must work without the package, and the package without it."""
    code = "from compile import MODULES, STAMP, depended_on; print(STAMP); print(len(MODULES)); print(*depended_on())"
    found = run(ROOT / "build_tools", code).stdout.splitlines()
    assert found[0] == os.path.relpath(compiled.stamp_path("sskafka"))
    sources = found[2].split()
    assert {"records/batch.py", "records/inspection.py", "model/errors.py", "storage/disk.py"} <= set(sources)
    assert all((ROOT / "src/sskafka" / source).is_file() for source in sources)


def test_no_interpreted_class_inherits_from_a_compiled_one() -> None:
    """mypyc refuses that when an object is made, maybe hours after the start, unless the base class allows it."""
    files = run(ROOT / "build_tools", "from compile import FILES; print(*FILES)").stdout.split()
    source = ROOT / "src/sskafka"
    bases = {
        node.name
        for file in files
        for node in ast.parse((source / file).read_text()).body
        if isinstance(node, ast.ClassDef) and not node.decorator_list and not node.name.endswith("Error")
    }
    assert {"Log", "Partition", "ProduceHandler"} <= bases
    assert "DelayedOperation" not in bases, "its decorator allows interpreted subclasses"
    wrong = {
        f"{path.relative_to(source)}: {node.name}"
        for path in source.rglob("*.py")
        if path.relative_to(source).as_posix() not in files
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and {ast.unparse(base).split(".")[-1] for base in node.bases} & bases
    }
    assert wrong == set()
