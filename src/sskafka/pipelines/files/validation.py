"""Validation of pipeline files by pydantic, with problems in our own words at their positions in the file.

Models are plain dataclasses: values made by code are not validated, values from a file are validated by `validated`.
A validator raises ValueError with a sentence about its field; `FileModel.problems` checks several fields together.
"""

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from functools import cache
from typing import Annotated, Any, Self, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from sskafka.model.ids import topic_name_problem
from sskafka.pipelines.files.document import Document, Fields, Location

T = TypeVar("T")

NOT_IN_FILE: Any = Field(exclude=True)
"""Marks a field that code sets. A `name` that is marked is the key of the mapping."""

LIST = "must be a list: each item begins with `- `"
MAPPING = "must be a mapping, with its fields indented below it"

NAME = r"[A-Za-z_]\w*"
DURATION = r"\d+\s*(milliseconds?|seconds?|minutes?|hours?|days?)"

_SENTENCES = {
    "dataclass_type": MAPPING,
    "dict_type": MAPPING,
    "list_type": LIST,
    "missing": "is missing",
    "string_too_short": "is empty",
    "tuple_type": LIST,
}


class FileModel:
    """A mapping of a pipeline file. Unknown fields are reported with the nearest known name."""

    __slots__ = ()
    __pydantic_config__ = ConfigDict(str_strip_whitespace=True)

    @model_validator(mode="before")
    @classmethod
    def _known_fields(cls, fields: Any, info: ValidationInfo) -> Any:
        if not isinstance(fields, Fields):
            return fields
        document = document_of(info)
        known = field_names(cls)  # type: ignore[arg-type]  # mypy does not see that classes are hashable
        for name in fields.keys() - known:
            hint = near_hint(name, known, f"known are {', '.join(sorted(known))}")
            document.add((*fields.location, name), f"there is no such field; {hint}", at_key=True)
        values = {name: value for name, value in fields.items() if name in known}
        if fields.key is not None:
            values.setdefault("name", fields.key)
        return cls.with_defaults(values)

    @classmethod
    def with_defaults(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Add defaults that depend on other fields."""
        return values

    @model_validator(mode="after")
    def _checked(self) -> Self:
        raise_problems(self.problems())
        return self

    def problems(self) -> Iterable[tuple[Location, str]]:
        """Return what is wrong with fields that are right by themselves, and where."""
        return ()


def document_of(info: ValidationInfo) -> Document:
    assert isinstance(info.context, Document)
    return info.context


@cache
def field_names(model: Any) -> frozenset[str]:
    """Return the names that the fields of a model have in the file."""
    return frozenset(name for one in dataclasses.fields(model) for name in _names(one))


def _names(one: "dataclasses.Field[Any]") -> Iterable[str]:
    infos = [data for data in getattr(one.type, "__metadata__", ()) if isinstance(data, FieldInfo)]
    if any(info.exclude for info in infos):
        return ()
    alias = next((info.validation_alias for info in infos if info.validation_alias), one.name)
    return map(str, alias.choices) if isinstance(alias, AliasChoices) else (str(alias),)


def validated(model: type[T], document: Document) -> T:
    """Return the document as a model; raises PipelineFileError with all problems that were found."""
    value: T | None = None
    try:
        value = _adapter(model).validate_python(document.fields, context=document)  # type: ignore[arg-type]  # see above
    except ValidationError as error:
        for location, text in problems_of(error):
            document.add(location, text)
    document.raise_problems()
    assert value is not None, "a validation that fails has problems"
    return value


@cache
def _adapter(model: Any) -> TypeAdapter[Any]:
    return TypeAdapter(model)


def raise_problems(problems: Iterable[tuple[Location, str]]) -> None:
    """Raise a ValidationError if there are problems; locations begin at the value that is validated."""
    details = [
        InitErrorDetails(type=PydanticCustomError("problem", "{text}", {"text": text}), loc=location, input=None)
        for location, text in problems
    ]
    if details:
        raise ValidationError.from_exception_data("pipeline file", details)


def problems_of(error: ValidationError) -> Iterator[tuple[Location, str]]:
    return ((details["loc"], _sentence(details)) for details in error.errors(include_url=False))


def _sentence(details: ErrorDetails) -> str:
    kind, value, context = details["type"], details["input"], details.get("ctx", {})
    if kind == "problem":
        return str(context["text"])
    if kind == "value_error":
        return str(context["error"])
    if kind in _SENTENCES:
        return _SENTENCES[kind]
    if not isinstance(value, str):
        return "must be text"
    if kind == "enum":
        choices = re.findall(r"'([^']*)'", context["expected"])
        hint = near_hint(value, choices, f"choose one of {', '.join(choices)}")
        return f"{value!r} is not possible; {hint}"
    if kind.startswith("bool"):
        return f"{value!r} is neither true nor false"
    return f"{value!r} is not a whole number above 0"


def near_hint(name: str, known: Iterable[str], otherwise: str) -> str:
    near = get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]}?" if near else otherwise


# Types of fields


def checked_by(problem: Callable[[str], str | None]) -> AfterValidator:
    """Check text by a function that returns what is wrong with it; empty text is not checked."""

    def check(text: str) -> str:
        found = problem(text) if text else None
        if found:
            raise ValueError(found)
        return text

    return AfterValidator(check)


def matching(pattern: str, otherwise: str) -> AfterValidator:
    """Check that text matches a pattern; `otherwise` continues the sentence about text that does not."""
    return checked_by(lambda text: None if re.fullmatch(pattern, text) else f"{text!r} {otherwise}")


def keyed(model: type[T]) -> PlainValidator:
    """Read a mapping of the names of tables to models as a tuple of models."""
    adapter = TypeAdapter(dict[str, model])  # type: ignore[valid-type]

    def read(value: Any, info: ValidationInfo) -> tuple[T, ...]:
        names = value if isinstance(value, Fields) else ()
        raise_problems(
            ((name,), f"{name!r} cannot be a table's name in SQL") for name in names if not re.fullmatch(NAME, name)
        )
        return tuple(adapter.validate_python(value, context=info.context).values())

    return PlainValidator(read)


ONE_OR_MORE = BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
Text: TypeAlias = Annotated[str, Field(min_length=1)]
Texts: TypeAlias = Annotated[tuple[str, ...], ONE_OR_MORE]
"""A list of texts; one text alone counts as a list of it."""
WholeNumber: TypeAlias = Annotated[int, Field(ge=1)]
TopicName: TypeAlias = Annotated[str, checked_by(topic_name_problem)]
Duration: TypeAlias = Annotated[str, matching(DURATION, "is not a time such as `10 minutes`")]
