"""What README and docs name is there: files and headings behind links, commands and options, make targets, code."""

import ast
import builtins
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.main import get_command

from sskafka.cli.commands import app
from sskafka.model.settings_table import BROKER_SETTINGS, TOPIC_SETTINGS

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
MAKEFILES = [ROOT / "Makefile", *ROOT.glob("*/*.mk"), *ROOT.glob("*/*/*.mk")]
GIVEN_IN_EXAMPLES = {"spark", "df"}  # names that an example of Spark begins with

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")


class Block(NamedTuple):
    language: str
    text: str


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


each_page = pytest.mark.parametrize("page", PAGES, ids=name_of)


def blocks(page: Path) -> list[Block]:
    return [Block(*match) for match in FENCE.findall(page.read_text(encoding="utf-8"))]


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


# -- links


def anchors(page: Path) -> set[str]:
    """Of its headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(prose(page)):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{target} is not there"
        assert not anchor or anchor in anchors(linked), f"{target}: there is no such heading"


# -- commands


def command_lines(page: Path) -> Iterator[str]:
    """What begins with `sskafka`: lines of examples, and words in the text that name a command."""
    for block in blocks(page):
        lines = [] if block.language == "python" else block.text.splitlines()
        for line in lines:
            typed = line.removeprefix("$ ").partition("  ")[0]  # what it does stands behind it
            yield from (part.strip() for part in re.split(r"&&|\|", typed) if part.strip().startswith("sskafka "))
    for words in INLINE.findall(prose(page)):
        if re.match(r"sskafka [a-z]", words):
            yield words


def words_of(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)[1:]
    except ValueError:  # an apostrophe of the text
        return line.split()[1:]


def check_command(words: list[str]) -> None:
    """Follows the words to a command and looks every option up there."""
    command: Any = get_command(app)
    context = command.make_context("sskafka", [], resilient_parsing=True)
    for position, word in enumerate(words):
        subcommands = hasattr(command, "get_command")
        if subcommands and not word.startswith("-"):
            found = command.get_command(context, word)
            assert found is not None, f"there is no command {word!r} in {' '.join(words)!r}"
            command = found
            continue
        check_option(command, word.strip("[]"), words[:position])


def check_option(command: Any, word: str, before: list[str]) -> None:
    option = word.partition("=")[0]
    is_value = re.fullmatch(r"-\d*", option) or before[-1:] in (["--to"], ["--shift-by"], ["-o"])
    if not option.startswith("-") or is_value or option in {"-h", "--help"}:
        return
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    assert option in known, f"{command.name} has no option {option}"


@each_page
def test_commands_and_their_options_exist(page: Path) -> None:
    for line in command_lines(page):
        check_command(words_of(line))


@each_page
def test_settings_that_are_set_exist(page: Path) -> None:
    known = {*BROKER_SETTINGS, *TOPIC_SETTINGS}
    for key in re.findall(r"--set ([a-z][\w.-]*)=", page.read_text(encoding="utf-8")):
        assert key in known, f"there is no setting {key}"


@each_page
def test_make_targets_exist(page: Path) -> None:
    rules = "\n".join(file.read_text(encoding="utf-8") for file in MAKEFILES)
    targets = set(re.findall(r"^([a-z-]+):", rules, re.MULTILINE))
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"(?:^\$ |`)make ([a-z-]+)", text, re.MULTILINE):
        assert target in targets, f"make {target}"


@each_page
def test_programs_that_are_run_exist(page: Path) -> None:
    for program in re.findall(r"^\$ python (\S+\.py)", page.read_text(encoding="utf-8"), re.MULTILINE):
        assert (ROOT / program).is_file(), program


# -- Python


@each_page
def test_python_examples_use_what_there_is(page: Path) -> None:
    for block in blocks(page):
        if block.language == "python":
            tree = compile(block.text, name_of(page), "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            check_names(tree)


def check_names(tree: ast.AST) -> None:
    known = {*dir(builtins), *GIVEN_IN_EXAMPLES}
    used = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                known |= {alias.asname or alias.name for alias in names}
                for alias in names:
                    import_module(alias.name)
            case ast.ImportFrom(module, names):
                known |= {alias.asname or alias.name for alias in names}
                for alias in names:
                    assert hasattr(import_module(module or ""), alias.name), f"{module} has no {alias.name}"
            case ast.Name(name, ast.Store()) | ast.arg(name) | ast.FunctionDef(name):
                known.add(name)
            case ast.Name(name, _):
                used.add(name)
    unknown = used - known
    assert unknown == set(), "names that come from nowhere"
