"""Sinks of a pipeline: where the rows of a table are written."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, Field, PlainValidator, TypeAdapter, ValidationError, ValidationInfo

from sskafka.pipelines.connector.client_properties import SECRET_LENGTH_MIN
from sskafka.pipelines.connector.options import Guarantee
from sskafka.pipelines.files.document import Fields, Location
from sskafka.pipelines.files.validation import (
    FileModel,
    Text,
    Texts,
    TopicName,
    WholeNumber,
    checked_by,
    document_of,
    matching,
    near_hint,
    problems_of,
    raise_problems,
)

Evolves: TypeAlias = Annotated[bool, Field(validation_alias="evolve")]
"""Whether columns that the table lacks are added to it."""


@dataclass(frozen=True, slots=True)
class _Sink(FileModel):
    name: Text
    """The kind of the sink by default."""
    table: Annotated[str, Field(validation_alias="from")] = field(default="", kw_only=True)
    """The source or step whose rows are written; empty: the result of the pipeline."""


@dataclass(frozen=True, slots=True)
class ParquetSink(_Sink):
    path: Text
    partition_by: Texts = ()


@dataclass(frozen=True, slots=True)
class DeltaSink(_Sink):
    path: Text
    partition_by: Texts = ()
    merge_keys: Texts = ()
    delete_column: str = ""
    """A boolean column that is not stored: if it is true, the row with the same keys is deleted from the table."""
    evolves: Evolves = False

    def problems(self) -> Iterator[tuple[Location, str]]:
        if self.delete_column and not self.merge_keys:
            yield ("delete_column",), "needs merge_keys: the columns by which the row to delete is found"


_PROPERTIES = TypeAdapter(dict[str, str])
_DEFAULT_CATALOG = "default"


def _catalog_name(value: Any) -> str:
    name = value.get("name", _DEFAULT_CATALOG) if isinstance(value, Fields) else value
    if not isinstance(name, str):
        raise ValueError("must be the name of a catalog or a mapping of its properties")
    return str(name)


def _catalog_properties(value: Any) -> dict[str, str]:
    if not isinstance(value, Fields):
        return {}
    return _PROPERTIES.validate_python({key: text for key, text in value.items() if key != "name"})


@dataclass(frozen=True, slots=True)
class IcebergSink(_Sink):
    identifier: Annotated[
        Text,
        Field(validation_alias="table"),
        matching(r"\w+(\.\w+)+", "is not a namespace and a table, such as sales.orders"),
    ]
    """Namespace and table, such as `sales.orders`."""
    catalog: Annotated[str, PlainValidator(_catalog_name)] = _DEFAULT_CATALOG
    catalog_properties: Annotated[
        dict[str, str], PlainValidator(_catalog_properties), Field(validation_alias="catalog")
    ] = field(default_factory=dict)
    """pyiceberg's properties (type, uri, warehouse, ...); empty: those of ~/.pyiceberg.yaml and the environment."""
    partition_by: Texts = ()
    evolves: Evolves = False


_NAME_PART = r"(?:[A-Za-z_][\w$#]*|\"[^\"]+\"|`[^`]+`|\[[^\]]+\])"
_URL_PROPERTIES = re.compile(r"[?;].*", re.DOTALL)
_FIELD_OF_OPTION = {name: name for name in ("url", "user", "password", "driver")}
_FIELD_OF_OPTION |= {"dbtable": "table", "query": "table"}
_REFUSED_OPTIONS = ("truncate", "createtablecolumntypes")


def shown_url(url: str) -> str:
    """Return the URL without the properties at its end, which may contain a password."""
    return _URL_PROPERTIES.sub("", url)


def _url_problem(url: str) -> str | None:
    shown = shown_url(url)
    return (
        None
        if url.startswith("jdbc:")
        else f"{shown!r} is not a JDBC URL, such as jdbc:postgresql://host:5432/database"
    )


def _masked_later(password: str, info: ValidationInfo) -> str:
    if len(password) >= SECRET_LENGTH_MIN:
        document_of(info).secrets.add(password)
    return password


@dataclass(frozen=True, slots=True)
class JdbcSink(_Sink):
    url: Annotated[Text, checked_by(_url_problem)]
    identifier: Annotated[
        Text,
        Field(validation_alias="table"),
        matching(
            rf"{_NAME_PART}(?:\.{_NAME_PART}){{0,2}}", "is not the name of a table, such as orders or sales.orders"
        ),
    ]
    """The table in the database, such as `sales.orders`."""
    user: str = ""
    password: Annotated[str, AfterValidator(_masked_later)] = field(default="", repr=False)
    driver: str = ""
    """The Java class of the driver; empty: the usual one for the URL."""
    merge_keys: Texts = ()
    column_types: dict[str, str] = field(default_factory=dict)
    """Types of columns if the sink creates the table; the others have Spark's default for the database."""
    options: dict[str, str] = field(default_factory=dict)
    """Other options of Spark's JDBC writer and properties of the driver."""

    def problems(self) -> Iterator[tuple[Location, str]]:
        if self.password and not self.user:
            yield ("password",), "needs user"
        for option in self.options:
            own = _FIELD_OF_OPTION.get(option.lower())
            if own:
                yield ("options", option), f"{option} is given by the field {own} of the sink"
            elif option.lower() in _REFUSED_OPTIONS:
                yield ("options", option), f"{option} is not possible here; column_types says how columns are created"


@dataclass(frozen=True, slots=True)
class TopicSink(_Sink):
    topic: Annotated[TopicName, Field(min_length=1)]
    key: str = ""
    """A column; empty: no key."""
    value: str = ""
    """A column; empty: all columns as JSON."""
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE
    partitions: WholeNumber | None = None
    """Number of partitions of a topic that the sink creates; None: the brokers' default."""


@dataclass(frozen=True, slots=True)
class ConsoleSink(_Sink):
    rows: WholeNumber = 20


Sink: TypeAlias = ParquetSink | DeltaSink | IcebergSink | JdbcSink | TopicSink | ConsoleSink

_KINDS = (ParquetSink, DeltaSink, IcebergSink, JdbcSink, TopicSink, ConsoleSink)
SINK_KINDS: dict[str, TypeAdapter[Sink]] = {
    kind.__name__.removesuffix("Sink").lower(): TypeAdapter(kind) for kind in _KINDS
}


def _read_sink(value: Any, info: ValidationInfo) -> Sink:
    """Read a mapping with one key, which is the kind of the sink."""
    if not isinstance(value, Fields):
        raise ValueError("must be a mapping, such as `parquet: {path: out}`")
    kind = next(iter(value), "")
    if len(value) != 1 or kind not in SINK_KINDS:
        hint = near_hint(kind, SINK_KINDS, "its fields are below it")
        raise ValueError(f"{', '.join(value) or 'nothing'}: a sink is one of {', '.join(SINK_KINDS)}; {hint}")
    try:
        return SINK_KINDS[kind].validate_python(value[kind], context=info.context)
    except ValidationError as error:
        raise_problems(((kind, *location), text) for location, text in problems_of(error))
        raise


SinkField: TypeAlias = Annotated[Sink, PlainValidator(_read_sink)]
