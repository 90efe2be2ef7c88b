"""Test cases of a pipeline: input records of its sources, and expected rows of its tables.

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

An expected row contains the columns to compare; its other columns may have any value.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import yaml
from pydantic import AfterValidator, BeforeValidator, Field

from sskafka.pipelines.files.document import Document, Location, Scalar, read_document
from sskafka.pipelines.files.pipeline import Pipeline, load_pipeline
from sskafka.pipelines.files.validation import NOT_IN_FILE, FileModel, Text, near_hint, validated
from sskafka.pipelines.files.variables import FileOptions

CASES_SUFFIX = ".test.yaml"
RESULT = "result"
DEAD_LETTERS = "dead_letters"

_YAML = "tag:yaml.org,2002:"


def _plain(value: Any) -> Any:
    """Return values of the file as JSON has them.

    Times stay text, and so do `no`, `on` and the like, which YAML 1.1 reads as booleans."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, Scalar):
        return value
    if value.tag in {f"{_YAML}int", f"{_YAML}float", f"{_YAML}null"}:
        return yaml.SafeLoader("").construct_object(yaml.ScalarNode(value.tag, str(value)))
    if value.tag == f"{_YAML}bool" and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    return str(value)


def _row(value: Any) -> Any:
    if not isinstance(value, dict):
        raise ValueError("the row is not a mapping of columns to values")
    return value


_NO_PIPELINE = Pipeline("")
PLAIN = AfterValidator(_plain)
Row: TypeAlias = Annotated[dict[str, Any], BeforeValidator(_row)]


@dataclass(frozen=True, slots=True)
class Case(FileModel):
    name: Text
    given: Annotated[Mapping[str, list[Any]], PLAIN] = field(default_factory=dict)
    """Records by source. A mapping is the value of a record as JSON, unless it has fields that begin with `_`."""
    expected: Annotated[Mapping[str, list[Row]], Field(validation_alias="expect"), PLAIN] = field(default_factory=dict)
    """Rows by table."""
    fails: str = ""
    """Part of the error with which the pipeline must fail; empty: it must not fail."""
    pipeline: Annotated[Pipeline, NOT_IN_FILE] = _NO_PIPELINE

    def __str__(self) -> str:
        return self.name

    def problems(self) -> Iterator[tuple[Location, str]]:
        if not self.expected and not self.fails:
            yield (), "expects nothing: give `expect` or `fails`"


@dataclass(frozen=True, slots=True)
class CasesFile(FileModel):
    cases: tuple[Case, ...]
    pipeline: str = ""
    profile: str = ""
    variables: Annotated[dict[str, str], Field(validation_alias="set")] = field(default_factory=dict)


def cases_file_of(pipeline: Path) -> Path:
    """Return the default path of the cases of a pipeline file: clicks.test.yaml beside clicks.yaml."""
    return pipeline.with_name(f"{pipeline.stem}{CASES_SUFFIX}")


def load_cases(path: str | Path, options: FileOptions | None = None) -> list[Case]:
    """Read a file of cases and the pipeline that it tests.

    `options` override those of the file. Raises PipelineFileError that names the position of every problem."""
    path, options = Path(path), options or FileOptions()
    document = read_document(path, FileOptions(environment=options.environment))
    file = validated(CasesFile, document)
    pipeline_path = _pipeline_path(file, document)
    variables = {**file.variables, **options.variables}
    pipeline = load_pipeline(
        pipeline_path, FileOptions(options.profile or file.profile, variables, options.environment)
    )
    _check_tables(file, pipeline, document)
    return [replace(case, pipeline=pipeline) for case in file.cases]


def _pipeline_path(file: CasesFile, document: Document) -> Path:
    default = document.path.name.removesuffix(CASES_SUFFIX) + ".yaml"
    path = document.path.parent / (file.pipeline or default)
    if not path.is_file() or path == document.path:
        document.add(("pipeline",), f"there is no file {path}" if file.pipeline else "is missing: the file to test")
        document.raise_problems()
    return path


def _check_tables(file: CasesFile, pipeline: Pipeline, document: Document) -> None:
    """Report tables that the pipeline does not have."""
    sources = [source.name for source in pipeline.sources]
    tables = [*pipeline.tables, RESULT, DEAD_LETTERS]
    for number, case in enumerate(file.cases):
        for field_name, lists, known in (("given", case.given, sources), ("expect", case.expected, tables)):
            for table in lists.keys() - known:
                hint = near_hint(table, known, f"known are {', '.join(known)}")
                document.add(("cases", number, field_name, table), f"there is no such table; {hint}", at_key=True)
    document.raise_problems()
