"""Expectations: conditions that the rows of a table should meet."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, TypeAlias

from pydantic import AfterValidator

from sskafka.pipelines.files.document import Location
from sskafka.pipelines.files.validation import NAME, FileModel, Text, matching, raise_problems


class Action(StrEnum):
    """What happens to a row that does not meet an expectation."""

    WARN = "warn"
    DROP = "drop"
    DLQ = "dlq"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Expectation(FileModel):
    name: Annotated[Text, matching(NAME, "must have letters, digits and _ only")]
    check: Text
    """A condition in SQL; null counts as not met."""
    action: Action = Action.WARN

    def problems(self) -> Iterator[tuple[Location, str]]:
        found = _beyond_the_record(self.check) if self.action is Action.DLQ else ""
        if found:
            text = (
                f"{found} may differ between the queries of the sinks and that of the dead letters, so that a record "
                "would be in both or in none; use the record alone: `_timestamp` is its time"
            )
            yield ("check",), text


def _beyond_the_record(check: str) -> str:
    """Return what in the condition depends on time, chance or place instead of the record; empty if nothing does."""
    text = _STRING_OR_ELSE.sub(lambda found: found["string"] or " ", check)
    found = _MOMENT.search(text) or _CALL.search(_STRING_OR_ELSE.sub("''", text))
    return found[0].strip() if found else ""


_STRING_OR_ELSE = re.compile(
    r"(?P<string>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|--[^\n]*|/\*.*?\*/|`[^`]*`",  # else: comments and columns
    re.DOTALL,
)
_CALL = re.compile(
    r"(?<![\w.])(?:current_(?:date|time|timestamp|user)|localtimestamp|session_user)\b"  # without () as well
    r"|\b(?:current_\w+|curdate|localtime|now|user|unix_timestamp(?=\s*\(\s*\))"
    r"|rand|randn|random|randstr|shuffle|uniform|uuid|java_method|reflect|try_reflect"
    r"|input_file_\w+|monotonically_increasing_id|spark_partition_id)\s*\(",
    re.IGNORECASE,
)
"""Functions of Spark that are not deterministic, or whose value is that of the batch."""
_WORD = r"(['\"])\s*(?:now|today|tomorrow|yesterday)\s*"
_MOMENT = re.compile(
    rf"(?:\b(?:date|timestamp(?:_[ln]tz)?|to_\w+)\s*\(?|(?<!<)>=?|<=?|\band\b)\s*{_WORD}\1"
    rf"|{_WORD}\2\s*(?:as|::)\s*(?:date|timestamp)",
    re.IGNORECASE,
)
"""Words for a moment where Spark converts them: `timestamp'now'`, `cast('today' as date)`, `at < 'tomorrow'`."""


def _without_dead_letters(expectations: tuple[Expectation, ...]) -> tuple[Expectation, ...]:
    text = "dlq is for expectations of a source: only there does a row belong to one record"
    raise_problems(((i, "action"), text) for i, one in enumerate(expectations) if one.action is Action.DLQ)
    return expectations


RowExpectations: TypeAlias = Annotated[tuple[Expectation, ...], AfterValidator(_without_dead_letters)]
"""Expectations of rows that do not come from a single record, so that none of them can be a dead letter."""
