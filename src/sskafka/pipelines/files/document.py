"""A YAML file as plain values (`Fields`, lists and `Scalar`s) whose positions in the file are known.

Everything that can be wrong with the file itself is found here: its encoding, its syntax, repeated keys, and aliases or
nesting that would exhaust memory. Each problem becomes one sentence with line, column and the path of the field.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from sskafka.pipelines.files.variables import FileOptions, masked, resolve

NESTING_MAX = 50
VALUES_MAX = 100_000
"""Values in a file, where an alias counts as all the values that it stands for."""

Location: TypeAlias = tuple[str | int, ...]
"""The keys and list indexes that lead to a value."""
Mark: TypeAlias = tuple[int, int]
"""Line and column; both begin at 1."""

_HINTS = {
    "'\\t'": "indent with spaces, not with tabs",
    "mapping values are not allowed": "put quotes around a value that contains `: `",
    "found another document": "a file contains one document; remove the second `---`",
}


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    line: int
    column: int
    where: str
    text: str

    def at(self, path: Path) -> str:
        return f"{path}:{self.line}:{self.column}: {self.where}{': ' if self.where else ''}{self.text}"


class PipelineFileError(Exception):
    """A pipeline file that cannot be used; the message has one line for each problem, with secrets masked."""

    def __init__(self, path: Path, problems: Iterable[Problem], secrets: Iterable[str] = ()) -> None:
        self.problems = sorted(set(problems))
        super().__init__("\n".join(masked(problem.at(path), secrets) for problem in self.problems))


class Scalar(str):
    """The text of a scalar; `tag` is the type that YAML gives it."""

    __slots__ = ("tag",)
    tag: str


class Fields(dict[str, Any]):
    """A mapping; `location` leads to it, and `key` is its key if it is in a mapping itself."""

    location: Location = ()

    @property
    def key(self) -> str | None:
        return self.location[-1] if self.location and isinstance(self.location[-1], str) else None


@dataclass(slots=True)
class Document:
    path: Path
    fields: Fields = field(default_factory=Fields)
    lines: dict[str, int] = field(default_factory=dict)
    """The line of each field, by its path. Spark may report a mistake in the field later."""
    secrets: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)
    _marks: dict[Location, Mark] = field(default_factory=dict)
    _key_marks: dict[Location, Mark] = field(default_factory=dict)

    def add(self, location: Location, text: str, *, at_key: bool = False) -> None:
        """Report a problem with a value or with its key. A missing value is reported at the mapping that lacks it."""
        marked = location
        while marked not in self._marks:
            marked = marked[:-1]
        mark = self._key_marks[marked] if at_key else self._marks[marked]
        self.problems.append(Problem(*mark, path_text(location), text))

    def add_at_node(self, node: yaml.Node, where: str, text: str) -> None:
        self.problems.append(Problem(*_mark(node.start_mark), where, text))

    def raise_problems(self) -> None:
        if self.problems:
            raise PipelineFileError(self.path, self.problems, self.secrets)

    def take(self, node: yaml.Node, location: Location = ()) -> Any:
        """Return the values of a node, and record their positions."""
        self._marks[location] = _mark(node.start_mark)
        self.lines[path_text(location)] = _first_line(node)
        if isinstance(node, yaml.MappingNode):
            fields = Fields()
            fields.location = location
            for key, value in node.value:
                self._key_marks[*location, key.value] = _mark(key.start_mark)
                fields[key.value] = self.take(value, (*location, key.value))
            return fields
        if isinstance(node, yaml.SequenceNode):
            return [self.take(item, (*location, index)) for index, item in enumerate(node.value)]
        scalar = Scalar(node.value)
        scalar.tag = node.tag
        return scalar


def path_text(location: Location) -> str:
    """Return a location in the form `sinks[0].parquet.path`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return text.removeprefix(".")


def read_document(path: Path, options: FileOptions) -> Document:
    """Read a file, apply its profile and replace its variables.

    Raises PipelineFileError if the file cannot be read or is not a YAML mapping. Other problems are in the result."""
    document = Document(path)
    root = _composed(path, _text(path))
    if not isinstance(root, yaml.MappingNode):
        text = f"{'the file is empty; ' if root is None else ''}a pipeline is a mapping that begins with `name: ...`"
        raise PipelineFileError(path, [Problem(1, 1, "", text)])
    _check_keys(root, "", document.add_at_node)
    document.raise_problems()
    resolved, document.secrets = resolve(root, options, document.add_at_node)
    document.fields = document.take(resolved)
    return document


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        return data.decode()
    except OSError as error:
        raise PipelineFileError(path, [Problem(1, 1, "", f"the file cannot be read: {error.strerror}")]) from None
    except UnicodeDecodeError as error:
        before = data[: error.start].decode()
        text = f"the file is not UTF-8 text: the byte 0x{data[error.start]:02x} is not allowed here"
        raise PipelineFileError(path, [Problem(*_end(before), "", text)]) from None


def _composed(path: Path, text: str) -> yaml.Node | None:
    loader = None
    try:
        loader = _BoundedLoader(text)
        return loader.get_single_node()
    except yaml.reader.ReaderError as error:
        mark = _end(text[: error.position])
        problem = f"this is not YAML: the character U+{ord(text[error.position]):04X} is not allowed"
    except yaml.MarkedYAMLError as error:
        mark = _mark(error.problem_mark or error.context_mark)
        hint = next((f"; {hint}" for part, hint in _HINTS.items() if part in str(error.problem)), "")
        problem = str(error.problem) if isinstance(error, _BoundError) else f"this is not YAML: {error.problem}{hint}"
    finally:
        if loader is not None:
            loader.dispose()
    raise PipelineFileError(path, [Problem(*mark, "", problem)])


class _BoundError(yaml.MarkedYAMLError):  # type: ignore[misc]  # PyYAML has no types
    """The file is valid YAML, but too large."""


class _BoundedLoader(yaml.SafeLoader):  # type: ignore[misc]  # see above
    """Refuses aliases that multiply values or contain themselves, and nesting that would exhaust the stack."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._open: list[str | None] = []
        self._sizes: dict[int, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: object) -> yaml.Node:
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent) and event.anchor in self._open:
            raise _BoundError(problem=f"the alias *{event.anchor} contains itself", problem_mark=event.start_mark)
        if len(self._open) == NESTING_MAX:
            text = f"values are nested more than {NESTING_MAX} levels deep"
            raise _BoundError(problem=text, problem_mark=event.start_mark)
        self._open.append(event.anchor)
        node = super().compose_node(parent, index)
        self._open.pop()
        self._sizes[id(node)] = size = self._size(node)
        if size > VALUES_MAX:
            text = f"the file has more than {VALUES_MAX:,} values, counting those that aliases repeat"
            raise _BoundError(problem=text, problem_mark=event.start_mark)
        return node

    def _size(self, node: yaml.Node) -> int:
        if isinstance(node, yaml.ScalarNode):
            return 1
        items = [value for _, value in node.value] if isinstance(node, yaml.MappingNode) else node.value
        return 1 + sum(self._sizes[id(item)] for item in items)


def _check_keys(node: yaml.Node, where: str, report: Callable[[yaml.Node, str, str], None]) -> None:
    """Report keys that are not text, and keys that occur twice in a mapping."""
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _check_keys(item, f"{where}[{index}]", report)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                report(key, where, "a key must be text")
                continue
            path = f"{where}.{key.value}".removeprefix(".")
            if key.value in seen:
                report(key, path, "is given twice")
            seen.add(key.value)
            _check_keys(value, path, report)


def _mark(mark: yaml.Mark) -> Mark:
    return mark.line + 1, mark.column + 1


def _end(text: str) -> Mark:
    return text.count("\n") + 1, len(text) - text.rfind("\n")


def _first_line(node: yaml.Node) -> int:
    """Return the line of the content. A block of text begins below its `|`, after any blank lines."""
    line: int = node.start_mark.line + 1
    if isinstance(node, yaml.ScalarNode) and node.style in {"|", ">"}:
        return line + 1 + len(node.value) - len(node.value.lstrip("\n"))
    return line
