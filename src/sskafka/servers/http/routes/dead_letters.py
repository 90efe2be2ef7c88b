"""Dead letters of pipelines: why they could not be used, and sending them back to their topics.

They are sent back in the order of their partitions. The offsets of a consumer group record how far, after each record,
as `sskafka pipeline dlq --replay` does; so a letter is sent once, unless the process dies in between.
"""

import asyncio
from collections import Counter
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from sskafka.client.cluster import Cluster
from sskafka.client.errors import UnknownTopicError
from sskafka.client.fetched import ConsumedRecord
from sskafka.client.groups import commit_offsets, committed_offsets
from sskafka.client.offset_range import Span
from sskafka.client.offsets import EARLIEST, LATEST, list_offsets
from sskafka.model.dead_letter import origin_of, original_headers, replay_group
from sskafka.model.ids import TopicPartition
from sskafka.records.builder import NewRecord
from sskafka.servers.http.browsing.pages import read_spans
from sskafka.servers.http.caller_clients import CallerClients
from sskafka.servers.http.context import HttpContext, at_most
from sskafka.servers.http.problems import CONFLICT, NOT_FOUND, UNAVAILABLE, Problem, documented
from sskafka.servers.http.routes.paging import Name
from sskafka.servers.http.routes.record_json import Record, RecordView

LOOKED_AT_MAX = 1_000
SHOWN_MAX = 200
REDRIVEN_MAX = 200
SHOWN_BYTES = 4_096
READ_TIMEOUT_MS = 10_000
REASON_MAX = 1_000
_READ_COMMITTED = 1


class Reason(BaseModel):
    error: str
    letters: int


class DeadLetter(BaseModel):
    topic: Annotated[str, Field(description="Where the record was read; empty: it is not a dead letter.")]
    partition: int
    offset: int
    source: str
    error: str
    record: Annotated[Record, Field(description="The dead letter itself, with all its headers.")]


class DeadLetters(BaseModel):
    waiting: Annotated[
        int,
        Field(description="Letters that were not sent back yet; of many, their offsets, with markers of transactions."),
    ]
    looked_at: Annotated[
        int, Field(description=f"Letters that `reasons` counts: the first ones, at most {LOOKED_AT_MAX}.")
    ]
    reasons: Annotated[list[Reason], Field(description="The most frequent first.")]
    letters: Annotated[list[DeadLetter], Field(description="The first ones in the order in which they are sent back.")]


class Redrive(BaseModel):
    limit: Annotated[int, Field(ge=1, description=f"At most {REDRIVEN_MAX}."), at_most(REDRIVEN_MAX)] = 100
    execute: Annotated[bool, Field(description="false: only show the plan.")] = False


class Target(BaseModel):
    topic: str
    letters: int


class Redriven(BaseModel):
    executed: bool
    targets: Annotated[list[Target], Field(description="Where letters were sent, or would be.")]
    left: Annotated[int, Field(description="As `waiting`, afterwards.")]


def routes(context: HttpContext) -> APIRouter:
    router = APIRouter(prefix="/api/v1/topics/{topic_name}/dead-letters", tags=["pipelines"])
    turn = asyncio.Lock()

    @router.get("", summary="Dead letters that were not sent back yet, by reason")
    async def dead_letters(
        topic_name: Name,
        request: Request,
        limit: Annotated[int, Query(ge=1, description=f"At most {SHOWN_MAX}."), at_most(SHOWN_MAX)] = 50,
    ) -> DeadLetters:
        async with context.clients(request) as clients, clients.reader.borrowed() as cluster:
            spans = await _waiting(cluster, topic_name)
            found = await _first(cluster, spans, LOOKED_AT_MAX)
        reasons = Counter(_text(origin_of(record.headers).error) for record in found)
        view = RecordView(SHOWN_BYTES)
        return DeadLetters(
            waiting=_left(spans, found, LOOKED_AT_MAX),
            looked_at=len(found),
            reasons=[Reason(error=error, letters=letters) for error, letters in reasons.most_common()],
            letters=[_letter(record, view) for record in found[:limit]],
        )

    @router.post(
        "/redrive",
        summary="Send the next dead letters back to the topics they came from; only a plan unless `execute` is set",
        responses=documented(
            {NOT_FOUND: "The topic of a letter is gone.", CONFLICT: "A record of the topic is not a dead letter."}
        ),
    )
    async def redrive(topic_name: Name, wanted: Redrive, request: Request) -> Redriven:
        async with turn, context.clients(request) as clients, clients.reader.borrowed() as cluster:
            spans = await _waiting(cluster, topic_name)
            found = await _first(cluster, spans, wanted.limit)
            targets = Counter(_target(record) for record in found)
            for record in found if wanted.execute else ():
                await _send_back(clients, record)
            left = _left(spans, found, wanted.limit)
            if wanted.execute:
                left = 0 if len(found) < wanted.limit else _count(await _waiting(cluster, topic_name))
        counted = [Target(topic=topic, letters=letters) for topic, letters in targets.most_common()]
        return Redriven(executed=wanted.execute, targets=counted, left=left)

    return router


async def _waiting(cluster: Cluster, topic: str) -> dict[TopicPartition, Span]:
    """Return the offsets of each partition that were not sent back yet; none before the first run creates the topic."""
    cluster.forget(topic)
    try:
        partitions = [TopicPartition(topic, number) for number in sorted((await cluster.topic(topic)).partitions)]
    except UnknownTopicError:
        return {}
    first = await list_offsets(cluster, dict.fromkeys(partitions, EARLIEST))
    end = await list_offsets(cluster, dict.fromkeys(partitions, LATEST), isolation=_READ_COMMITTED)
    done = await committed_offsets(cluster, replay_group(topic), partitions)
    starts = {one: max(first[one].offset, done[one].offset if one in done else 0) for one in partitions}
    return {one: Span(starts[one], end[one].offset) for one in partitions if starts[one] < end[one].offset}


def _count(spans: dict[TopicPartition, Span]) -> int:
    return sum((span.stop or 0) - span.start for span in spans.values())


def _left(spans: dict[TopicPartition, Span], found: list[ConsumedRecord], limit: int) -> int:
    """Return how many letters wait: those found if they are all, otherwise their offsets, with markers among them."""
    return len(found) if len(found) < limit else _count(spans)


async def _first(cluster: Cluster, spans: dict[TopicPartition, Span], limit: int) -> list[ConsumedRecord]:
    """Return the first waiting letters, partition by partition."""
    found: list[ConsumedRecord] = []
    deadline_ms = cluster.deadline_ms(READ_TIMEOUT_MS)
    for partition, span in spans.items():
        start, stop = span.start, span.stop or 0
        while start < stop and len(found) < limit:
            window = Span(start, min(stop, start + limit - len(found)))
            read = await read_spans(cluster, {partition: window}, "read_committed", deadline_ms)
            if partition not in read:
                raise Problem(UNAVAILABLE, f"{partition} could not be read within {READ_TIMEOUT_MS // 1000} s")
            found += read[partition]
            start = window.stop or stop
    return found


def _target(record: ConsumedRecord) -> str:
    topic = origin_of(record.headers).topic
    if not topic:
        at = f"record {record.offset} of {record.topic}-{record.partition}"
        raise Problem(CONFLICT, f"{at} is not a dead letter: it has no header dlq.topic; nothing was sent")
    return topic


async def _send_back(clients: CallerClients, record: ConsumedRecord) -> None:
    origin = origin_of(record.headers)
    partition = None
    if record.key is None:
        partition = min(origin.partition, len((await clients.cluster.topic(origin.topic)).partitions) - 1)
    again = NewRecord(record.key, record.value, original_headers(record.headers))
    await clients.writer.send(origin.topic, again, partition)
    progress = {TopicPartition(record.topic, record.partition): record.offset + 1}
    await clients.cluster.retrying(lambda: commit_offsets(clients.cluster, replay_group(record.topic), progress))


def _letter(record: ConsumedRecord, view: RecordView) -> DeadLetter:
    origin = origin_of(record.headers)
    return DeadLetter(
        topic=origin.topic,
        partition=origin.partition,
        offset=origin.offset,
        source=origin.source,
        error=_text(origin.error),
        record=view.show(record),
    )


def _text(error: str) -> str:
    return error[:REASON_MAX]
