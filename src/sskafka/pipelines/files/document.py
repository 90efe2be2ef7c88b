"""A YAML document whose every value knows its line, and the problems found in it.

`Fields` is a mapping that is taken apart name by name; what nobody asked for is a problem too, with the nearest known
name. Problems are collected, so that one look at a file shows all of them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

import yaml

from sskafka.pipelines.files.variables import FileChoices, masked, resolve

E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    line: int
    where: str
    text: str

    def at(self, path: Path) -> str:
        return f"{path}:{self.line}: {self.where}: {self.text}" if self.where else f"{path}:{self.line}: {self.text}"


class PipelineFileError(Exception):
    """A pipeline file that cannot be used; the message has one line for each problem, with secrets masked."""

    def __init__(self, path: Path, problems: list[Problem], secrets: frozenset[str] = frozenset()) -> None:
        super().__init__("\n".join(masked(problem.at(path), secrets) for problem in sorted(set(problems))))
        self.problems = sorted(set(problems))


@dataclass(slots=True)
class Problems:
    found: list[Problem] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)
    """Where each field's value begins: what is wrong with it may be seen only later, by Spark."""
    secrets: frozenset[str] = frozenset()

    def add(self, node: yaml.Node, where: str, text: str) -> None:
        self.found.append(Problem(node.start_mark.line + 1, where, text))

    def add_at(self, where: str, text: str) -> None:
        """About a field that was read before."""
        self.found.append(Problem(self.lines[where], where, text))


def load(path: Path, choices: FileChoices) -> tuple["Fields", Problems]:
    """The document's mapping with profile and variables in place.

    Raises PipelineFileError if the file is not YAML or not a mapping."""
    text = path.read_text(encoding="utf-8")
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = 1 if mark is None else mark.line + 1
        reason = getattr(error, "problem", None) or str(error)
        raise PipelineFileError(path, [Problem(line, "", f"this is not YAML: {reason}")]) from None
    if not isinstance(node, yaml.MappingNode):
        raise PipelineFileError(path, [Problem(1, "", "a pipeline is a mapping that begins with `name: ...`")])
    problems = Problems()
    resolved, problems.secrets = resolve(node, choices, problems.add)
    return Fields(resolved, "", problems), problems


def first_line(node: yaml.Node) -> int:
    """Of the content: a block of text begins below its `|`, behind lines that are blank."""
    line: int = node.start_mark.line + 1
    if isinstance(node, yaml.ScalarNode) and node.style in {"|", ">"}:
        return line + 1 + len(node.value) - len(node.value.lstrip("\n"))
    return line


class Fields:
    """A mapping of the document."""

    def __init__(self, node: yaml.MappingNode, where: str, problems: Problems) -> None:
        self.node = node
        self.where = where
        self.problems = problems
        self._values: dict[str, yaml.Node] = {}
        self._keys: dict[str, yaml.Node] = {}
        for key, value in node.value:
            name = str(key.value)
            if name in self._values:
                problems.add(key, self.path(name), "is given twice")
            self._values[name], self._keys[name] = value, key
            problems.lines[self.path(name)] = first_line(value)
        self._asked: dict[str, None] = {}

    def path(self, name: str) -> str:
        return f"{self.where}.{name}" if self.where else name

    def names(self) -> list[str]:
        return list(self._values)

    def __contains__(self, name: str) -> bool:
        self._asked[name] = None
        return name in self._values

    def node_of(self, name: str) -> yaml.Node:
        return self._values.get(name, self.node)

    def problem(self, name: str, text: str) -> None:
        """A problem with a value, or with its absence."""
        self.problems.add(self.node_of(name), self.path(name), text)

    def finish(self) -> None:
        """Whatever was not asked for is unknown."""
        for name, key in self._keys.items():
            if name not in self._asked:
                near = get_close_matches(name, self._asked, n=1)
                hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(self._asked))}"
                self.problems.add(key, self.path(name), f"there is no such field; {hint}")

    # Values

    def text(self, name: str, default: str | None = None) -> str:
        """Numbers count as text; without a default the field is required."""
        if name not in self:
            if default is None:
                self.problem(name, "is missing")
            return default or ""
        node = self._values[name]
        if not isinstance(node, yaml.ScalarNode):
            self.problem(name, "must be text")
            return default or ""
        return str(node.value).strip()

    def number(self, name: str, default: int | None = None) -> int | None:
        text = self.text(name, "")
        if not text:
            return default
        if not text.isdigit() or int(text) < 1:
            self.problem(name, f"{text!r} is not a whole number above 0")
            return default
        return int(text)

    def choice(self, name: str, kind: type[E], default: E | None = None) -> E:
        text = self.text(name, None if default is None else str(default))
        choices = [str(one) for one in kind]
        if text in choices:
            return kind(text)
        if name in self._values:
            near = get_close_matches(text, choices, n=1)
            hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(choices)}"
            self.problem(name, f"{text!r} is not possible; {hint}")
        return default or next(iter(kind))

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts; one text alone counts as a list of it."""
        if name not in self:
            return ()
        node = self._values[name]
        items = node.value if isinstance(node, yaml.SequenceNode) else [node]
        if not all(isinstance(item, yaml.ScalarNode) for item in items):
            self.problem(name, "must be a list of names")
            return ()
        return tuple(str(item.value).strip() for item in items)

    def pairs(self, name: str) -> dict[str, str]:
        """A mapping of text to text, as options are."""
        inner = self.mapping(name)
        if inner is None:
            return {}
        return {key: inner.text(key, "") for key in inner.names()}

    def mapping(self, name: str) -> "Fields | None":
        if name not in self:
            return None
        node = self._values[name]
        if not isinstance(node, yaml.MappingNode):
            self.problem(name, "must be a mapping, with its fields indented below it")
            return None
        return Fields(node, self.path(name), self.problems)

    def items(self, name: str) -> Iterator["Fields"]:
        """The mappings in a list."""
        if name not in self:
            return
        node = self._values[name]
        if not isinstance(node, yaml.SequenceNode):
            self.problem(name, "must be a list: each item begins with `- `")
            return
        for place, item in enumerate(node.value):
            where = f"{self.path(name)}[{place}]"
            self.problems.lines[where] = first_line(item)
            if isinstance(item, yaml.MappingNode):
                yield Fields(item, where, self.problems)
            else:
                self.problems.add(item, where, "must be a mapping")

    def each(self, name: str, read: Callable[["Fields"], T]) -> tuple[T, ...]:
        read_items = []
        for item in self.items(name):
            read_items.append(read(item))
            item.finish()
        return tuple(read_items)
