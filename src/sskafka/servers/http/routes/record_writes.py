"""Store a record, and send a stored record again to another topic."""

from base64 import b64decode
from typing import Annotated, Self

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field, model_validator

from sskafka.model.ids import TopicPartition
from sskafka.records.builder import NewRecord
from sskafka.servers.http.context import HttpContext
from sskafka.servers.http.problems import NOT_FOUND, TOO_LARGE, UNCLEAR, documented
from sskafka.servers.http.routes.paging import NAME_MAX, Name
from sskafka.servers.http.routes.records import Offset, PartitionNumber, record_at

_OUTCOMES = documented(
    {
        NOT_FOUND: "There is no such topic, partition or record.",
        TOO_LARGE: "The record is larger than the topic allows.",
        UNCLEAR: "The outcome is unknown; the record may or may not be stored.",
    }
)

WantedPartition = Annotated[int | None, Field(ge=0, le=2**31 - 1, description="null: chosen by the key.")]


class ProducedBytes(BaseModel):
    """Either text or base64."""

    text: str | None = None
    base64: str | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.text is None) == (self.base64 is None):
            raise ValueError("give either text or base64")
        self.data()
        return self

    def data(self) -> bytes:
        return b64decode(self.base64, validate=True) if self.base64 is not None else (self.text or "").encode()


class ProducedHeader(BaseModel):
    name: Annotated[str, Field(max_length=1_000)]
    value: ProducedBytes | None = None


class ProducedRecord(BaseModel):
    key: ProducedBytes | None = None
    value: Annotated[ProducedBytes | None, Field(description="null: a tombstone, which deletes the key by compaction.")]
    headers: Annotated[list[ProducedHeader], Field(max_length=100)] = []
    partition: WantedPartition = None
    timestamp_ms: Annotated[int | None, Field(ge=0, le=2**53, description="null: now.")] = None

    def record(self) -> NewRecord:
        headers = tuple((one.name, None if one.value is None else one.value.data()) for one in self.headers)
        key = None if self.key is None else self.key.data()
        value = None if self.value is None else self.value.data()
        record = NewRecord(key, value, headers)
        return record if self.timestamp_ms is None else record._replace(timestamp=self.timestamp_ms)


class Copy(BaseModel):
    """Where a stored record is sent again. Key, value and headers stay byte for byte the same."""

    topic: Annotated[str, Field(min_length=1, max_length=NAME_MAX)]
    partition: WantedPartition = None
    keep_timestamp: bool = False


class Stored(BaseModel):
    topic: str
    partition: int
    offset: int
    timestamp_ms: int


def routes(context: HttpContext) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["records"])

    @router.post("/topics/{topic_name}/records", status_code=201, summary="Store a record", responses=_OUTCOMES)
    async def produce(topic_name: Name, produced: ProducedRecord, request: Request) -> Stored:
        record = produced.record()
        async with context.clients(request) as clients:
            delivery = await clients.writer.send(topic_name, record, produced.partition)
        return Stored(**delivery.partition._asdict(), offset=delivery.offset, timestamp_ms=delivery.timestamp)

    @router.post(
        "/topics/{topic_name}/partitions/{partition}/records/{offset}/copies",
        status_code=201,
        summary="Send a stored record again, to this or another topic",
        responses=_OUTCOMES,
    )
    async def copy(
        topic_name: Name, partition: PartitionNumber, offset: Offset, wanted: Copy, request: Request
    ) -> Stored:
        async with context.clients(request) as clients:
            async with clients.reader.borrowed() as cluster:
                found = await record_at(cluster, TopicPartition(topic_name, partition), offset)
            again = NewRecord(found.key, found.value, found.headers)
            if wanted.keep_timestamp:
                again = again._replace(timestamp=found.timestamp)
            delivery = await clients.writer.send(wanted.topic, again, wanted.partition)
        return Stored(**delivery.partition._asdict(), offset=delivery.offset, timestamp_ms=delivery.timestamp)

    return router
