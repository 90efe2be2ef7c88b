"""Transformations: SQL or a Python function that makes a table of other tables."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, PlainValidator, TypeAdapter, ValidationInfo

from sskafka.pipelines.files.document import Location
from sskafka.pipelines.files.expectation import RowExpectations
from sskafka.pipelines.files.validation import NOT_IN_FILE, FileModel, Text, document_of


@dataclass(frozen=True, slots=True)
class SqlTransform:
    sql: str


@dataclass(frozen=True, slots=True)
class PythonTransform:
    """`function(spark, tables)` of a module or a file; `tables` are DataFrames by name."""

    location: str
    function: str


Transform: TypeAlias = SqlTransform | PythonTransform


def _read_function(value: Any, info: ValidationInfo) -> PythonTransform:
    location, colon, function = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    if not colon or not function.isidentifier():
        raise ValueError("must be module:function or file.py:function")
    if location.endswith(".py"):
        _check_function(document_of(info).path.parent / location, function)
    return PythonTransform(location, function)


def _check_function(file: Path, function: str) -> None:
    """Raise ValueError if the file does not define the function."""
    if not file.is_file():
        raise ValueError(f"there is no file {file}")
    try:
        module = ast.parse(file.read_bytes())
    except SyntaxError as error:
        raise ValueError(f"{file}:{error.lineno or 1}: {error.msg}") from None
    names = [node.name for node in module.body if isinstance(node, ast.FunctionDef)]
    if function not in names:
        raise ValueError(f"{file} has no function {function!r}; it has {', '.join(names) or 'none'}")


PythonFunction: TypeAlias = Annotated[PythonTransform, PlainValidator(_read_function)]
Sql: TypeAlias = Annotated[Text, AfterValidator(lambda text: text.rstrip(";").strip())]


@dataclass(frozen=True, slots=True)
class Code(FileModel):
    """Either SQL or a Python function."""

    sql: Sql | None = None
    python: PythonFunction | None = None

    @property
    def transform(self) -> Transform:
        return self.python or SqlTransform(self.sql or "")

    def problems(self) -> Iterator[tuple[Location, str]]:
        if (self.sql is None) == (self.python is None):
            yield (), "needs either sql or python"


@dataclass(frozen=True, slots=True)
class Step(Code):
    """A table made of other tables: of sources, and of the steps above it."""

    name: Annotated[str, NOT_IN_FILE] = ""
    expectations: RowExpectations = ()


_CODE = TypeAdapter(Code)


def _read_transform(value: Any, info: ValidationInfo) -> Transform:
    return _CODE.validate_python(value, context=info.context).transform


TransformField: TypeAlias = Annotated[Transform, PlainValidator(_read_transform)]
