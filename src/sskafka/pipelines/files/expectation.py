"""Expectations: conditions that the rows of a table should meet."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, TypeAlias

from pydantic import AfterValidator

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


def _without_dead_letters(expectations: tuple[Expectation, ...]) -> tuple[Expectation, ...]:
    text = "dlq is for expectations of a source: only there is a record behind a row"
    raise_problems(((i, "action"), text) for i, one in enumerate(expectations) if one.action is Action.DLQ)
    return expectations


RowExpectations: TypeAlias = Annotated[tuple[Expectation, ...], AfterValidator(_without_dead_letters)]
"""Expectations of rows that do not come from a single record, so that none of them can be a dead letter."""
