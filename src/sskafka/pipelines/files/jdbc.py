"""The fields of a `jdbc` sink in a pipeline file."""

import re

from sskafka.pipelines.files.document import Fields
from sskafka.pipelines.files.model import JdbcSink

_PART = r"(?:[A-Za-z_][\w$#]*|\"[^\"]+\"|`[^`]+`|\[[^\]]+\])"
_TABLE = re.compile(rf"{_PART}(?:\.{_PART}){{0,2}}")
_PROPERTIES = re.compile(r"[?;].*", re.DOTALL)
_OWN_FIELDS = {
    "url": "url",
    "dbtable": "table",
    "query": "table",
    "user": "user",
    "password": "password",
    "driver": "driver",
}
_NOT_POSSIBLE = ("truncate", "createtablecolumntypes")
_SECRET_LENGTH_MIN = 4


def jdbc_sink(name: str, fields: Fields) -> JdbcSink:
    sink = JdbcSink(
        name,
        fields.text("url"),
        fields.text("table"),
        fields.text("user", ""),
        fields.text("password", ""),
        fields.text("driver", ""),
        fields.texts("merge_keys"),
        fields.pairs("column_types"),
        fields.pairs("options"),
    )
    if len(sink.password) >= _SECRET_LENGTH_MIN:
        fields.problems.secrets |= {sink.password}
    if sink.url and not sink.url.startswith("jdbc:"):
        fields.problem(
            "url", f"{shown_url(sink.url)!r} is not a JDBC URL, such as jdbc:postgresql://host:5432/database"
        )
    if sink.identifier and not _TABLE.fullmatch(sink.identifier):
        fields.problem("table", f"{sink.identifier!r} is not the name of a table, such as orders or sales.orders")
    if sink.password and not sink.user:
        fields.problem("password", "needs user")
    _check_options(fields, sink)
    return sink


def _check_options(fields: Fields, sink: JdbcSink) -> None:
    for option in sink.options:
        own = _OWN_FIELDS.get(option.lower())
        if own:
            fields.problem("options", f"{option} is given by the field {own} of the sink")
        elif option.lower() in _NOT_POSSIBLE:
            fields.problem("options", f"{option} is not possible here; column_types says how columns are created")


def shown_url(url: str) -> str:
    """The URL without the properties behind it, among which may be a password."""
    return _PROPERTIES.sub("", url)
