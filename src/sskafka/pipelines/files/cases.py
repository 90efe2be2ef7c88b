"""Test cases of a pipeline: records that its sources are given, and the rows that are expected of its tables.

    pipeline: clicks.yaml                 # default: for clicks.test.yaml the file clicks.yaml beside it
    profile: test                         # optional, as is `set`: values of the pipeline's variables
    cases:
      - name: clicks without a user are dead letters
        given:
          clicks:                         # a source
            - {user: anna, ms: 5}         # the fields of a record's value ...
            - {_value: "not json", _key: k, _timestamp: 2026-01-01T00:00:00Z}       # ... or the record itself
        expect:
          result: [{user: anna}]          # the result, a source or a step: each row once, in any order
          dead_letters: [{source: clicks, error: the value is not JSON}]

An expected row names the columns that matter; columns that it leaves out may have any value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from sskafka.pipelines.files.document import Fields, PipelineFileError, load
from sskafka.pipelines.files.model import Pipeline
from sskafka.pipelines.files.parse import load_pipeline
from sskafka.pipelines.files.variables import FileChoices

CASES_SUFFIX = ".test.yaml"
RESULT = "result"
DEAD_LETTERS = "dead_letters"


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    pipeline: Pipeline
    given: Mapping[str, list[Any]] = field(default_factory=dict)
    """Records by source. A mapping is the value of a record as JSON, unless it has fields that begin with `_`."""
    expected: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Rows by table."""
    fails: str = ""
    """Part of the error with which the pipeline must fail; empty: it must not."""

    def __str__(self) -> str:
        return self.name


def cases_file_of(pipeline: Path) -> Path:
    """Where the cases of a pipeline file are by default: clicks.test.yaml beside clicks.yaml."""
    return pipeline.with_name(f"{pipeline.stem}{CASES_SUFFIX}")


def load_cases(path: str | Path, choices: FileChoices | None = None) -> list[Case]:
    """Read a file of cases and the pipeline that it is about.

    `choices` win over those of the file. Raises PipelineFileError that names the line of every problem."""
    path, choices = Path(path), choices or FileChoices()
    fields, problems = load(path, FileChoices(environment=choices.environment))
    pipeline = load_pipeline(_pipeline_path(fields, path), _choices_of(fields, choices))
    if "cases" not in fields:
        fields.problem("cases", "is missing: a list, each with name, given and expect")
    cases = list(fields.each("cases", lambda item: _case(item, pipeline)))
    fields.finish()
    if problems.found:
        raise PipelineFileError(path, problems.found, problems.secrets)
    return cases


def _pipeline_path(fields: Fields, path: Path) -> Path:
    default = path.name.removesuffix(CASES_SUFFIX) + ".yaml" if path.name.endswith(CASES_SUFFIX) else None
    file = path.parent / fields.text("pipeline", default)
    if not file.is_file():
        fields.problem("pipeline", f"there is no file {file}")
        raise PipelineFileError(path, fields.problems.found)
    return file


def _choices_of(fields: Fields, choices: FileChoices) -> FileChoices:
    variables = {**fields.pairs("set"), **choices.variables}
    return FileChoices(choices.profile or fields.text("profile", ""), variables, choices.environment)


def _case(fields: Fields, pipeline: Pipeline) -> Case:
    sources = [source.name for source in pipeline.sources]
    tables = [*sources, *(step.name for step in pipeline.steps), RESULT, DEAD_LETTERS]
    case = Case(
        fields.text("name"),
        pipeline,
        _lists(fields, "given", sources),
        _lists(fields, "expect", tables),
        fields.text("fails", ""),
    )
    _check_rows(fields, case.expected)
    if not case.expected and not case.fails:
        fields.problems.add(fields.node, fields.where, "expects nothing: give `expect` or `fails`")
    return case


def _lists(fields: Fields, name: str, known: list[str]) -> dict[str, list[Any]]:
    """A list for each table; a table that the pipeline does not have is a problem."""
    inner = fields.mapping(name)
    if inner is None:
        return {}
    lists = {}
    for table in known:
        if table in inner:
            content = _plain(inner.node_of(table))
            if not isinstance(content, list):
                inner.problem(table, "must be a list: each item begins with `- `")
                continue
            lists[table] = content
    inner.finish()
    return lists


def _check_rows(fields: Fields, expected: Mapping[str, list[Any]]) -> None:
    for table, rows in expected.items():
        if not all(isinstance(row, dict) for row in rows):
            fields.problem("expect", f"a row of {table} is not a mapping of columns to values")


_YAML = "tag:yaml.org,2002:"


def _plain(node: yaml.Node) -> Any:
    """The values of a node as JSON knows them.

    Times stay text, and so do `no`, `on` and the like, which YAML 1.1 reads as booleans."""
    if isinstance(node, yaml.MappingNode):
        return {str(key.value): _plain(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item) for item in node.value]
    if node.tag in {f"{_YAML}int", f"{_YAML}float", f"{_YAML}null"}:
        return yaml.SafeLoader("").construct_object(node)
    if node.tag == f"{_YAML}bool" and node.value.lower() in {"true", "false"}:
        return node.value.lower() == "true"
    return str(node.value)
