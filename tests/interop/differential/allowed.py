"""Differences that are meant to be there, each with its reason. Any other difference fails a test."""

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from differential.comparison import ABSENT, Difference
from differential.exchange import SILENT
from sskafka.model.settings_table import BROKER_SETTINGS


def always(kafka: Any, sskafka: Any) -> bool:
    return True


def explained(kafka: Any, sskafka: Any) -> bool:
    return bool(sskafka)


def only_here(kafka: Any, sskafka: Any) -> bool:
    return bool(kafka == ABSENT)


def own_setting(kafka: Any, sskafka: Any) -> bool:
    name = sskafka.get("name") if isinstance(sskafka, dict) else None
    return bool(kafka == ABSENT and name in BROKER_SETTINGS and BROKER_SETTINGS[name].own)


def broke_down(kafka: Any, sskafka: Any) -> bool:
    return bool(kafka == "UNKNOWN_SERVER_ERROR" and sskafka == "INVALID_REQUEST")


class Allowed(NamedTuple):
    api: str
    """A pattern, as `field` is."""
    field: str
    """The place in the answer, without indexes; empty for the answer as a whole."""
    reason: str
    holds: Callable[[Any, Any], bool] = always
    """Whether a pair of values, Apache Kafka's first, is such a difference."""
    place: str = ""
    """What the place in the answer, with its indexes, has in it."""

    def covers(self, difference: Difference) -> bool:
        return (
            fnmatchcase(difference.exchange.api, self.api)
            and fnmatchcase(difference.field, self.field)
            and self.place in difference.place
            and self.holds(difference.kafka, difference.sskafka)
        )


def described(kafka: Any, sskafka: Any) -> bool:
    return bool(kafka) and bool(sskafka)


def of_absent_groups(kafka: Any, sskafka: Any) -> bool:
    names = {"share.version", "streams.version"}
    return bool(sskafka == ABSENT and isinstance(kafka, dict) and kafka.get("name") in names)


def switched_off(kafka: Any, sskafka: Any) -> bool:
    return bool((kafka, sskafka) == (1, 0))


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
    Allowed("DescribeConfigs", "*.documentation", "Settings are described in SSKafka's own words.", described),
    Allowed(
        "IncrementalAlterConfigs",
        "responses.error_code",
        "Apache Kafka breaks down at an operation that does not exist; SSKafka refuses it.",
        broke_down,
    ),
    Allowed("DescribeConfigs", "results.configs*", "SSKafka has settings of its own.", own_setting),
    Allowed(
        "ApiVersions",
        "api_keys",
        "APIs of SSKafka's own have keys above 20,000; clients do not ask for them.",
        only_here,
    ),
    Allowed(
        "ApiVersions",
        "finalized_features*",
        "SSKafka serves neither share groups nor streams groups, so new clusters leave them switched off.",
        of_absent_groups,
    ),
    Allowed("ApiVersions", "supported_features.max_version", "The same.", switched_off),
    Allowed("ApiVersions", "finalized_features_epoch", "An offset of the metadata log, which holds other records."),
)

ALLOWED += tuple(
    Allowed("DescribeConfigs", "results.configs.*", "ADR 0006: another default.", place=f"[{row.name}]")
    for row in BROKER_SETTINGS.values()
    if row.kafka_default is not None
)


def reason_for(difference: Difference) -> str | None:
    return next((one.reason for one in ALLOWED if one.covers(difference)), None)
