"""Parts that are imported on demand: the names for type checkers exist, and a start imports none of them."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from sskafka.broker import on_demand


def names_for_type_checkers() -> dict[str, str]:
    """Return the modules of the imports in the file, by name."""
    tree = ast.parse(Path(on_demand.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and "sskafka" in (node.module or "")]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def test_every_name_that_type_checkers_see_is_there() -> None:
    assert names_for_type_checkers().keys() == on_demand._MODULES.keys()
    for name, module in names_for_type_checkers().items():
        assert getattr(on_demand, name) is getattr(sys.modules[module], name)


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="Typewriter"):
        on_demand.Typewriter  # type: ignore[attr-defined]  # noqa: B018


def test_a_start_imports_none_of_them() -> None:
    code = "import sys, sskafka.broker; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not set(on_demand._MODULES.values()) & set(loaded)
