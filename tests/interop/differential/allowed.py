"""Differences that are meant to be there, each with its reason. Any other difference fails a test."""

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from differential.comparison import ABSENT, KEYS, Difference
from differential.exchange import SILENT, error_codes
from sskafka.model.errors import ErrorCode
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


class Allowed(NamedTuple):
    api: str
    """A pattern, as `field` is."""
    field: str
    """The place in the answer, without indexes; empty for the answer as a whole."""
    reason: str
    holds: Callable[[Any, Any], bool] = always
    """Whether a pair of values, Apache Kafka's first, is such a difference."""
    note: str = "*"
    """A pattern for the note of the exchange."""
    place: str = ""
    """What the place in the answer, with its indexes, has in it."""

    def covers(self, difference: Difference) -> bool:
        return (
            fnmatchcase(difference.exchange.api, self.api)
            and fnmatchcase(difference.field, self.field)
            and fnmatchcase(difference.exchange.note, self.note)
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


def named_twice(kafka: Any, sskafka: Any) -> bool:
    """Whether SSKafka answers elements more than once that Apache Kafka answers once."""
    if not (isinstance(kafka, list) and isinstance(sskafka, list) and len(kafka) < len(sskafka)):
        return False
    if not all(isinstance(one, dict) for one in (*kafka, *sskafka)):
        return False
    key = next((name for name in KEYS if name != "producer_id" and kafka and name in kafka[0]), "")
    return bool(key) and {one[key] for one in kafka} == {one[key] for one in sskafka}


def without_partitions(kafka: Any, sskafka: Any) -> bool:
    """Whether one of the two answers says nothing about a topic that the request names without partitions."""
    said = [one for one in (kafka, sskafka) if one != ABSENT]
    if len(said) != 1 or not isinstance(said[0], dict):
        return False
    lists = [value for value in said[0].values() if isinstance(value, list)]
    return bool(lists) and not any(lists) and said[0].get("error_code", "NONE") == "NONE"


def neither_explains(kafka: Any, sskafka: Any) -> bool:
    return not kafka and not sskafka


def unanswered(kafka: Any, sskafka: Any) -> bool:
    return bool(kafka == SILENT.what)


DIRECTORY_KEPT = "SSKafka also keeps the directory for a topic that is not there yet; its replica is not available."
CONSUMERS_STOP = "SSKafka refuses batches at which librdkafka consumers stop for good, or skip records."
NO_EPOCH_REFUSED = "SSKafka refuses a producer id without an epoch, which no client sends."
NEGATIVE_SIZES = "SSKafka takes a negative size for 0: it sends one batch, as for every size that is too small."
REST_REFUSED = "SSKafka refuses bytes behind the last batch, which Apache Kafka drops silently."

ALLOWED = (
    Allowed("AlterReplicaLogDirs", "*.error_code", DIRECTORY_KEPT, note="an unknown topic"),
    *(
        Allowed("Produce", "*", CONSUMERS_STOP, note=f"lie: {kind}*")
        for kind in (
            "record length",
            "record too long",
            "offset delta",
            "key length -2",
            "value length -2",
            "header value length -2",
            "gzip: two members",
            "gzip: bytes behind",
            "snappy: bytes behind",
            "lz4: bytes behind",
            "lz4: two frames",
        )
    ),
    Allowed(
        "Produce",
        "*",
        "SSKafka refuses bytes behind the batch before it looks at the checksum.",
        note="lie: batch length shorter than its records",
    ),
    Allowed("*", "*", NO_EPOCH_REFUSED, note="*producer id without epoch*"),
    Allowed("Fetch", "*", NEGATIVE_SIZES, note="-1 bytes a *"),
    Allowed("*", "*", REST_REFUSED, note="trailing bytes*"),
    Allowed("Produce", "*", REST_REFUSED, note="lie: bytes behind the batch"),
    Allowed(
        "Fetch", "*.records.length", "Two compressors make different sizes of the same records.", note="*read back"
    ),
    Allowed(
        "DeleteTopics", "responses*", "A topic named by name and by id is refused once or twice.", note="both forms"
    ),
    Allowed("*", "", "Apache Kafka never answers some requests that it cannot handle; SSKafka does.", unanswered),
    Allowed(
        "*",
        "*error_message",
        "Explanations are for people: SSKafka gives one wherever Apache Kafka does, in words of its own.",
        explained,
    ),
    Allowed("DescribeConfigs", "*.documentation", "Settings are described in SSKafka's own words.", described),
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
    Allowed("*", "*", "What a request names twice Apache Kafka keeps in a map, and so answers once.", named_twice),
    Allowed("*", "*", "A topic that is named without partitions may be in the answer or not.", without_partitions),
    Allowed("*", "*error_message", "No explanation is null or empty.", neither_explains),
    Allowed("DescribeQuorum", "topics.partitions.leader_epoch", "How many elections there were is a matter of timing."),
    Allowed("DescribeQuorum", "topics.partitions.high_watermark", "The metadata logs hold other records."),
    Allowed(
        "DescribeQuorum", "topics.partitions.current_voters.log_end_offset", "The metadata logs hold other records."
    ),
    Allowed("ApiVersions", "finalized_features_epoch", "An offset of the metadata log, which holds other records."),
)

ALLOWED += tuple(
    Allowed("DescribeConfigs", "results.configs.*", "ADR 0006: another default.", place=f"[{row.name}]")
    for row in BROKER_SETTINGS.values()
    if row.kafka_default is not None
)


KAFKA_FAILS = "UNKNOWN_SERVER_ERROR is an exception that Apache Kafka does not handle; SSKafka names the fault."

# What SSKafka answers to requests that make Apache Kafka fail so, by API. Every other answer to them is a difference.
NAMED_FAULTS: dict[str, set[ErrorCode]] = {
    "Fetch": {ErrorCode.INVALID_REQUEST},
    "ListOffsets": {ErrorCode.INVALID_REQUEST},
    "IncrementalAlterConfigs": {ErrorCode.INVALID_REQUEST},
    "Produce": {ErrorCode.INVALID_RECORD, ErrorCode.MESSAGE_TOO_LARGE},
    "CreateDelegationToken": {ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED},
    "DescribeTopicPartitions": {ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
    "Metadata": {ErrorCode.UNKNOWN_TOPIC_ID},
    "WriteTxnMarkers": {ErrorCode.INVALID_PRODUCER_EPOCH},
}


def names_fault(difference: Difference) -> bool:
    """Whether SSKafka refuses, for a reason that its API may have, what Apache Kafka fails at."""
    if ErrorCode.UNKNOWN_SERVER_ERROR not in error_codes(difference.exchange.answer):
        return False
    named = NAMED_FAULTS.get(difference.exchange.api, set())
    is_in_part = difference.field != "error_code" and difference.sskafka != ABSENT
    if difference.kafka == ErrorCode.UNKNOWN_SERVER_ERROR.name and is_in_part:
        return difference.sskafka in {code.name for code in named}
    return any(code in named for code in error_codes(difference.ours.answer))


def reason_for(difference: Difference) -> str | None:
    if names_fault(difference):
        return KAFKA_FAILS
    return next((one.reason for one in ALLOWED if one.covers(difference)), None)
