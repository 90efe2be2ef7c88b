"""Rules for the source that ruff does not check: the length of functions, and one thing for each class name."""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
FUNCTION_LINES_MAX = 60
NAMED_ELSEWHERE = (
    "sskafka/wire/messages",  # Apache Kafka's schemas name the messages and their parts
    "sskafka/raft/messages.py",  # the same messages, as the pure core knows them
    "sskafka/challenge",  # the tester shares nothing with the brokers that it tests
    "sskafka/pipelines",
    "sskafka/cli",
    "sskafka/evaluation",
)
"""Where class names may be those of other packages: programs beside the broker, and names that others have chosen."""


@cache
def _modules() -> dict[str, ast.Module]:
    """Every module of the source, by its path below `src`."""
    return {path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}


def _functions(module: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a function. The options of a command are documentation and do not count."""
    assert function.end_lineno is not None
    is_command = any("typer." in ast.unparse(argument) for argument in function.args.args)
    start = function.body[0].lineno if is_command else function.lineno
    return function.end_lineno - start + 1


def test_functions_are_short() -> None:
    long = {
        f"{path}:{function.lineno} {function.name}": _lines(function)
        for path, module in _modules().items()
        for function in _functions(module)
        if _lines(function) > FUNCTION_LINES_MAX
    }
    assert long == {}


def test_the_length_of_a_function_counts_its_docstring_and_its_nested_functions() -> None:
    function, _ = _functions(ast.parse('def outer():\n    """Text."""\n    def inner():\n        pass\n    inner()\n'))
    assert _lines(function) == 5


def test_the_length_of_a_command_does_not_count_its_options() -> None:
    (command,) = _functions(
        ast.parse("def up(\n    port: Annotated[int, typer.Option()] = 1,\n) -> None:\n    run()\n")
    )
    assert _lines(command) == 1


def test_a_class_name_stands_for_one_thing() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path, module in _modules().items():
        if not path.startswith(NAMED_ELSEWHERE):
            for name in _public_classes(module):
                homes[name].append(path)
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def _public_classes(module: ast.Module) -> Iterator[str]:
    """Yield the classes that other modules can import, except the JSON models of HTTP routes.

    The names of those models are part of the HTTP API: OpenAPI shows them."""
    for node in module.body:
        is_json = isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "BaseModel" for base in node.bases)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and not is_json:
            yield node.name


def test_only_replication_knows_the_log_of_a_partition() -> None:
    found = [
        f"{path}:{node.lineno}"
        for path, module in _modules().items()
        if not path.startswith("sskafka/replication")
        for node in ast.walk(module)
        if _is_log_of_partition(node)
    ]
    assert found == []


def _is_log_of_partition(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "log"
        and ast.unparse(node.value).rpartition(".")[2].lstrip("_") == "partition"
    )


@pytest.mark.parametrize(
    ("source", "is_found"), [("partition.log.read()", True), ("self._partition.log", True), ("shard.log", False)]
)
def test_the_log_of_a_partition_is_found(source: str, is_found: bool) -> None:
    assert any(_is_log_of_partition(node) for node in ast.walk(ast.parse(source))) is is_found


@pytest.mark.parametrize(
    ("source", "names"), [("class A: pass\nclass _B: pass", ["A"]), ("class C(BaseModel): x: int", [])]
)
def test_private_classes_and_json_models_may_share_a_name(source: str, names: list[str]) -> None:
    assert list(_public_classes(ast.parse(source))) == names


def test_modules_of_tests_have_names_of_their_own() -> None:
    """pytest imports test modules by their names alone: two of one name cannot run together."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []
