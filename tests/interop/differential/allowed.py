"""Differences that are meant to be there, each with its reason. Any other difference fails a test."""

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from differential.comparison import ABSENT, Difference
from differential.exchange import SILENT


def always(kafka: Any, sskafka: Any) -> bool:
    return True


def explained(kafka: Any, sskafka: Any) -> bool:
    return bool(sskafka)


def only_here(kafka: Any, sskafka: Any) -> bool:
    return bool(kafka == ABSENT)


class Allowed(NamedTuple):
    api: str
    """A pattern, as `field` is."""
    field: str
    """The place in the answer, without indexes; empty for the answer as a whole."""
    reason: str
    holds: Callable[[Any, Any], bool] = always
    """Whether a pair of values, Apache Kafka's first, is such a difference."""

    def covers(self, difference: Difference) -> bool:
        return (
            fnmatchcase(difference.exchange.api, self.api)
            and fnmatchcase(difference.field, self.field)
            and self.holds(difference.kafka, difference.sskafka)
        )


def unanswered(kafka: Any, sskafka: Any) -> bool:
    return bool(kafka == SILENT.what)


ALLOWED = (
    Allowed("*", "", "Apache Kafka never answers some requests that it cannot handle; SSKafka does.", unanswered),
    Allowed(
        "*",
        "*error_message",
        "Explanations are for people: SSKafka gives one wherever Apache Kafka does, in words of its own.",
        explained,
    ),
    Allowed(
        "ApiVersions",
        "api_keys",
        "APIs of SSKafka's own have keys above 20,000; clients do not ask for them.",
        only_here,
    ),
    Allowed("ApiVersions", "finalized_features_epoch", "An offset of the metadata log, which holds other records."),
)


def reason_for(difference: Difference) -> str | None:
    return next((one.reason for one in ALLOWED if one.covers(difference)), None)
