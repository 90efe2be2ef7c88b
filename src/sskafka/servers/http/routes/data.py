"""/data/v1: store and read records as the lab defines it, with batches and long polls on request.

Beyond the lab: `records` stores several at once, `max_wait_ms` waits for the first one, `acks: isr` is Kafka's own.
Keys and payloads are text. Bytes that are not UTF-8 are sent as base64, with `key_base64` or `payload_base64` set.
"""

import asyncio
import base64
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal, Self, TypeVar

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field, WithJsonSchema, model_validator

from sskafka.client.cluster import Cluster
from sskafka.client.errors import ClientError, UnknownTopicError, is_retriable
from sskafka.client.fetched import ConsumedRecord
from sskafka.client.metadata import TopicView
from sskafka.model.errors import KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.records.builder import NewRecord
from sskafka.servers.http.context import NOT_THE_LEADER, HttpContext, at_most, leader_only
from sskafka.servers.http.lab_names import BrokerId, parse_topic_partition
from sskafka.servers.http.problems import NOT_FOUND, TOO_LARGE, UNAVAILABLE, UNCLEAR, UNPROCESSABLE, Problem, documented
from sskafka.servers.http.record_writer import NO_LEADER_TIMEOUT_MS, Acks
from sskafka.servers.http.replica_wait import FollowerReports

T = TypeVar("T")

RECORDS_MAX = 100_000
WAIT_MAX_MS = 60_000
OFFSET_MAX = 2**63 - 2
CLIENT_GONE = 499  # the client is gone; nobody reads the answer

TopicPartitionName = Annotated[str, Field(examples=["testtopic-1"], description="The topic, a dash, the partition.")]
AcksField = Annotated[
    Literal["all", "isr", "1", "0", 1, 0],
    WithJsonSchema({"enum": ["all", "isr", "1", "0", 1, 0], "default": "all"}),
    Field(
        description="Replicas that must have the record first: all, the in-sync ones (isr), the leader (1), none (0)."
    ),
]


class Record(BaseModel):
    key: str | None = None
    payload: Annotated[str | None, Field(examples=["my message"])]
    key_base64: bool = False
    payload_base64: bool = False

    def to_bytes(self) -> NewRecord:
        return NewRecord(_bytes(self.key, self.key_base64), _bytes(self.payload, self.payload_base64))


class ProduceRequest(BaseModel):
    """One record, or several as `records`."""

    topic_partition: TopicPartitionName
    acks: AcksField = "all"
    key: str | None = None
    payload: Annotated[str | None, Field(examples=["my message"])] = None
    key_base64: bool = False
    payload_base64: bool = False
    records: Annotated[list[Record] | None, Field(min_length=1, max_length=RECORDS_MAX)] = None

    @model_validator(mode="after")
    def check_records(self) -> Self:
        if (self.records is None) == ("payload" not in self.model_fields_set):
            raise ValueError("give either payload or records")
        return self

    def to_records(self) -> list[NewRecord]:
        """Return the records. Raise Problem for invalid base64."""
        if self.records is not None:
            return [record.to_bytes() for record in self.records]
        return [NewRecord(_bytes(self.key, self.key_base64), _bytes(self.payload, self.payload_base64))]


class ConsumeRequest(BaseModel):
    topic_partition: TopicPartitionName
    last_offset: Annotated[int, Field(ge=-1, le=OFFSET_MAX, examples=[-1])] = -1
    max_batch_size: Annotated[int, Field(ge=1, examples=[100]), at_most(RECORDS_MAX)] = 100
    follower_broker_id: BrokerId | None = None
    max_wait_ms: Annotated[int, Field(ge=0), at_most(WAIT_MAX_MS)] = 0


class ReadRecord(BaseModel):
    offset: int
    key: str | None
    payload: str | None
    key_base64: bool = Field(default=False, description="Present only when the key is base64.")
    payload_base64: bool = Field(default=False, description="Present only when the payload is base64.")


class ConsumeResponse(BaseModel):
    last_offset: int
    records: list[ReadRecord]


def routes(context: HttpContext) -> APIRouter:
    refusals = documented(
        {
            NOT_FOUND: "There is no such topic or partition.",
            TOO_LARGE: "A record is too large.",
            UNCLEAR: "The connection to the partition's leader broke: the records may or may not be stored.",
        }
    )
    router = APIRouter(
        prefix="/data/v1", tags=["lab"], responses={**NOT_THE_LEADER, **refusals}, dependencies=[leader_only(context)]
    )

    @router.post("/produce", status_code=204, summary="Store records", response_class=Response)
    async def produce(body: ProduceRequest, request: Request) -> Response:
        records, acks = body.to_records(), Acks(str(body.acks))
        async with context.clients(request) as clients:
            partition = await _existing(clients.cluster, body.topic_partition)
            writing = clients.writer.write(partition, records, acks)
            async with _named(body.topic_partition):
                await (_unless_gone(request, writing) if acks in {Acks.ALL, Acks.IN_SYNC} else writing)
        return Response(status_code=204)

    @router.post("/consume", summary="Read records", response_model=ConsumeResponse)
    async def consume(body: ConsumeRequest, request: Request) -> Response:
        async with context.clients(request) as clients:
            partition = await _existing(clients.cluster, body.topic_partition)
            if body.follower_broker_id is not None:
                topic = clients.cluster.view.topics[partition.topic]
                _note_follower(context.reports, topic, partition.partition, body.follower_broker_id, body.last_offset)
            reading = clients.reader.read(partition, body.last_offset + 1, body.max_batch_size, body.max_wait_ms)
            async with _named(body.topic_partition):
                found = await (_unless_gone(request, reading) if body.max_wait_ms else reading)
        last_offset = found.records[-1].offset if found.records else -1 if found.is_empty else body.last_offset
        return JSONResponse({"last_offset": last_offset, "records": [_shown(record) for record in found.records]})

    return router


@asynccontextmanager
async def _named(name: str) -> AsyncIterator[None]:
    """Name the partition in errors as the caller does, who counts from 1."""
    try:
        yield
    except UnknownTopicError:
        raise Problem(NOT_FOUND, f"there is no partition {name} any more") from None
    except (KafkaError, ClientError) as error:
        if is_retriable(error):
            raise Problem(UNAVAILABLE, f"partition {name} has no available leader") from error
        raise


async def _existing(cluster: Cluster, name: str) -> TopicPartition:
    """Return the partition of that name. Refresh the metadata for an unknown one, which may be new."""
    partition = parse_topic_partition(name)
    topic = await _topic(cluster, partition.topic)
    if partition.partition not in topic.partitions:
        cluster.forget(topic.name)
        topic = await _topic(cluster, partition.topic)
    if partition.partition not in topic.partitions:
        raise Problem(NOT_FOUND, f"there is no partition {name}: topic {topic.name} has {len(topic.partitions)}")
    return partition


async def _topic(cluster: Cluster, name: str) -> TopicView:
    try:
        return await cluster.retrying(
            lambda: cluster.topic(name), topics=[name], deadline_ms=cluster.deadline_ms(NO_LEADER_TIMEOUT_MS)
        )
    except UnknownTopicError:
        raise Problem(NOT_FOUND, f"there is no topic {name}") from None


def _note_follower(reports: FollowerReports, topic: TopicView, index: int, follower: int, last_offset: int) -> None:
    if follower in topic.partitions[index].replicas:
        reports.note(topic.topic_id, index, follower, last_offset)


async def _unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine until the client disconnects."""
    working = asyncio.create_task(work)
    gone = asyncio.create_task(_until_gone(request))
    try:
        await asyncio.wait((working, gone), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise Problem(CLIENT_GONE, "the client has disconnected")
        return working.result()
    finally:
        working.cancel()
        gone.cancel()


async def _until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _bytes(text: str | None, is_base64: bool) -> bytes | None:
    if text is None:
        return None
    try:
        return base64.b64decode(text, validate=True) if is_base64 else text.encode()
    except ValueError as error:  # a lone surrogate is a string in JSON, but not valid text
        raise Problem(UNPROCESSABLE, f"a key or payload is not {'base64' if is_base64 else 'text'}: {error}") from error


def _shown(record: ConsumedRecord) -> dict[str, Any]:
    """Return the record in the lab's format. Fields beyond the lab appear only if they apply."""
    shown: dict[str, Any] = {"offset": record.offset}
    flags: dict[str, bool] = {}
    for name, value in (("key", record.key), ("payload", record.value)):
        try:
            shown[name] = None if value is None else value.decode()
        except UnicodeDecodeError:
            shown[name] = base64.b64encode(value or b"").decode()
            flags[f"{name}_base64"] = True
    return shown | flags
