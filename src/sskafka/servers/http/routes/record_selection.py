"""Which records of a topic a request asks for: partitions, positions, isolation and schemas."""

from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from sskafka.client.cluster import Cluster
from sskafka.client.offset_range import OffsetRange, Span, parse_offset_range, resolve
from sskafka.client.offsets import EARLIEST, LATEST, list_offsets
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.servers.http.browsing.payloads import Schema
from sskafka.servers.http.browsing.schema_files import SchemaFiles
from sskafka.servers.http.browsing.schemas import SchemaError, parse_schema
from sskafka.servers.http.problems import BAD_REQUEST, Problem

PARTITIONS_MAX = 1_000
SCHEMA_CHARACTERS_MAX = 16_384
_OFFSETS_TIMEOUT_MS = 5_000

SchemaText = Annotated[
    str,
    Field(
        max_length=SCHEMA_CHARACTERS_MAX,
        description='Avro schema as JSON, or {"protobuf": descriptor set in base64, "message": name}; empty: that of '
        "the broker, if it has one.",
    ),
]


class RecordSchemas(NamedTuple):
    key: Schema | None
    value: Schema | None


class RecordQuery(BaseModel):
    """The parameters that all routes of records share."""

    model_config = ConfigDict(populate_by_name=True)

    partitions: Annotated[
        str, Field(max_length=8_192, pattern=r"^(\d{1,10}(,\d{1,10})*)?$", description="Such as 0,2; empty: all.")
    ] = ""
    start: Annotated[
        str,
        Field(
            alias="from",
            max_length=64,
            description="start, end, an offset N, +N after the start, -N before the end, or @TIME; empty: the default.",
        ),
    ] = ""
    committed: Annotated[bool, Field(description="Leave out records of open and aborted transactions.")] = False
    key_schema: SchemaText = ""
    value_schema: SchemaText = ""

    @property
    def isolation_level(self) -> str:
        return "read_committed" if self.committed else "read_uncommitted"

    @property
    def isolation(self) -> int:
        return int(self.committed)

    def schemas(self, topic: str, files: SchemaFiles) -> RecordSchemas:
        """Return the schemas of this request, or else those that the broker has. Raise Problem for unusable ones."""
        return RecordSchemas(
            _schema(self.key_schema, "key_schema") or files.find(topic, "key"),
            _schema(self.value_schema, "value_schema") or files.find(topic, "value"),
        )

    def position(self, default: str, now_ms: int) -> OffsetRange:
        """Return where to start. Raise Problem for a text that is no position."""
        return position_of(self.start or default, "from", now_ms)


def position_of(text: str, parameter: str, now_ms: int) -> OffsetRange:
    """Parse one position. Raise Problem, which names the parameter, for other texts."""
    try:
        wanted = parse_offset_range(text, now_ms)
    except (ValueError, OverflowError) as error:
        raise Problem(BAD_REQUEST, f"{parameter}: {error}") from None
    if wanted.stop is not None:
        raise Problem(BAD_REQUEST, f"{parameter}: {text!r} is a range; name one position")
    return wanted


class Selection:
    """The readable partitions that a request has chosen, with the offsets that they have now."""

    def __init__(self, bounds: dict[TopicPartition, Span], unavailable: list[int]) -> None:
        self.bounds = bounds
        self.unavailable = unavailable
        """Partitions without a leader."""

    async def starts(self, cluster: Cluster, wanted: OffsetRange, isolation: int) -> dict[TopicPartition, int]:
        spans = await resolve(cluster, wanted, list(self.bounds), isolation)
        return {partition: span.start for partition, span in spans.items()}


async def select(cluster: Cluster, topic: str, query: RecordQuery) -> Selection:
    """Find the partitions of a topic that the query names and their offsets. Raise KafkaError if there are none."""
    view = await cluster.topic(topic)
    numbers = [int(word) for word in query.partitions.split(",")] if query.partitions else sorted(view.partitions)
    chosen = list(dict.fromkeys(numbers))
    if len(chosen) > PARTITIONS_MAX:
        raise Problem(BAD_REQUEST, f"choose at most {PARTITIONS_MAX} of the {len(chosen)} partitions")
    led: list[int] = []
    unavailable: list[int] = []
    for number in chosen:
        one = await cluster.partition(TopicPartition(topic, number))
        (led if one.leader in cluster.view.brokers else unavailable).append(number)
    if not led:
        cluster.forget(topic)
        raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"no chosen partition of {topic!r} has a leader now")
    partitions = [TopicPartition(topic, number) for number in led]
    deadline_ms = cluster.deadline_ms(_OFFSETS_TIMEOUT_MS)
    starts = await list_offsets(cluster, dict.fromkeys(partitions, EARLIEST), deadline_ms=deadline_ms)
    ends = await list_offsets(
        cluster, dict.fromkeys(partitions, LATEST), isolation=query.isolation, deadline_ms=deadline_ms
    )
    bounds = {one: Span(starts[one].offset, max(starts[one].offset, ends[one].offset)) for one in partitions}
    return Selection(bounds, unavailable)


def _schema(text: str, parameter: str) -> Schema | None:
    if not text.strip():
        return None
    try:
        return parse_schema(text)
    except SchemaError as error:
        raise Problem(BAD_REQUEST, f"{parameter}: {error}") from None
