"""Search through records, follow new ones, and download them as JSON lines."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field
from starlette.types import Receive, Scope, Send

from sskafka.client.cluster import Cluster
from sskafka.client.errors import ClientError
from sskafka.client.fetched import ConsumedRecord
from sskafka.client.offset_range import Span
from sskafka.model.errors import KafkaError
from sskafka.records.batch import CorruptBatchError
from sskafka.servers.http.browsing.filter import Predicate, compile_filter, json_value
from sskafka.servers.http.browsing.filter_syntax import CHARACTERS_MAX, FilterError
from sskafka.servers.http.browsing.scan import Decoders, RecordScan, ScanBudget, ScanProgress
from sskafka.servers.http.context import HttpContext, at_most
from sskafka.servers.http.problems import BAD_REQUEST, NOT_FOUND, UNAVAILABLE, Problem, documented
from sskafka.servers.http.routes.paging import Name
from sskafka.servers.http.routes.record_json import RecordView
from sskafka.servers.http.routes.record_selection import RecordQuery, RecordSchemas, position_of, select

SCANS_MAX = 16
"""Searches, live tails and downloads at the same time."""
RECORDS_MAX, SECONDS_MAX, MATCHES_MAX = 10_000_000, 3_600, 10_000
UNLIMITED = 2**63
DOWNLOAD_RECORDS_MAX = 1_000_000
SHOWN_BYTES = 4_096
CHUNK_BYTES = 64 * 1024
DOWNLOAD_BYTES_MAX = 16 * 1024 * 1024
"""Largest value that a download shows whole; no topic allows larger ones by default."""


class FilteredQuery(RecordQuery):
    filter: Annotated[
        str,
        Field(
            max_length=CHARACTERS_MAX,
            description='Such as: key == "a" and value.user.id > 5; empty: all. `matches` looks at the beginning of a'
            " text that is too long for its regular expression: at least 8 KB.",
        ),
    ] = ""

    until: Annotated[
        str, Field(max_length=64, description="Where to end, as `from`; empty: at the end. Not with `follow`.")
    ] = ""

    def predicate(self, now_ms: int) -> Predicate | None:
        if not self.filter.strip():
            return None
        try:
            return compile_filter(self.filter, now_ms)
        except FilterError as error:
            raise Problem(BAD_REQUEST, f"filter: {error}") from None

    def decoders(self, schemas: RecordSchemas) -> Decoders:
        key, value = (json_value if schema is None else schema.read for schema in schemas)
        return Decoders(key, value)


class SearchQuery(FilteredQuery):
    follow: Annotated[bool, Field(description="Wait for new records; `from` is the end by default.")] = False
    max_records: Annotated[int, Field(ge=1, description="Records to look at."), at_most(RECORDS_MAX)] = 1_000_000
    max_seconds: Annotated[int, Field(ge=1), at_most(SECONDS_MAX)] = 60
    max_matches: Annotated[int, Field(ge=1, description="Not with `follow`."), at_most(MATCHES_MAX)] = 100
    value_bytes: Annotated[int, Field(ge=1, le=64 * 1024)] = SHOWN_BYTES


class DownloadQuery(FilteredQuery):
    limit: Annotated[int, Field(ge=1, description="Records in the file."), at_most(DOWNLOAD_RECORDS_MAX)] = 10_000


class FilterCheck(BaseModel):
    column: Annotated[int | None, Field(description="Where the filter is wrong, from 1; null if it can be used.")]
    problem: str | None


def routes(context: HttpContext) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["records"])
    scans = asyncio.Semaphore(SCANS_MAX)
    missing = documented({NOT_FOUND: "There is no such topic or partition."})

    @router.get("/filters/check", summary="Whether a filter can be used, and where it is wrong")
    async def check(filter: Annotated[str, Query(max_length=CHARACTERS_MAX)]) -> FilterCheck:  # noqa: A002
        try:
            compile_filter(filter, context.clock.now_ms())
        except FilterError as error:
            return FilterCheck(column=error.column, problem=str(error))
        return FilterCheck(column=None, problem=None)

    @router.get(
        "/topics/{topic_name}/records/search",
        summary="Records that match a filter, or new records, as server-sent events with progress",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {}}}, **missing},
    )
    async def search(topic_name: Name, request: Request, query: Annotated[SearchQuery, Query()]) -> StreamingResponse:
        scan = _Scan(context, request, topic_name, query, scans)
        view = RecordView(query.value_bytes, *query.schemas(topic_name, context.schemas))
        matches_max = UNLIMITED if query.follow else query.max_matches
        budget = ScanBudget(query.max_records, query.max_seconds, matches_max)
        await scan.open(budget, follow=query.follow)
        return _ScanResponse(scan, _events(scan, view), "text/event-stream", {"Cache-Control": "no-store"})

    @router.get(
        "/topics/{topic_name}/records/download",
        summary="Records as a file with one JSON object a line",
        response_class=StreamingResponse,
        responses={200: {"content": {"application/x-ndjson": {}}}, **missing},
    )
    async def download(
        topic_name: Name, request: Request, query: Annotated[DownloadQuery, Query()]
    ) -> StreamingResponse:
        scan = _Scan(context, request, topic_name, query, scans)
        view = RecordView(DOWNLOAD_BYTES_MAX, *query.schemas(topic_name, context.schemas))
        await scan.open(ScanBudget(RECORDS_MAX, SECONDS_MAX, query.limit), follow=False)
        headers = {"Content-Disposition": f'attachment; filename="{topic_name}.jsonl"', "Cache-Control": "no-store"}
        return _ScanResponse(scan, _lines(scan, view), "application/x-ndjson", headers)

    return router


class _Scan:
    """A scan with the connections that it reads on. `open` raises what is wrong before the answer begins."""

    def __init__(
        self, context: HttpContext, request: Request, topic: str, query: FilteredQuery, scans: asyncio.Semaphore
    ) -> None:
        self._context = context
        self._request = request
        self._topic = topic
        self._query = query
        self._scans = scans
        self._stack = AsyncExitStack()

    async def open(self, budget: ScanBudget, *, follow: bool) -> None:
        now_ms = self._context.clock.now_ms()
        schemas = self._query.schemas(self._topic, self._context.schemas)
        accepts, decoders = self._query.predicate(now_ms), self._query.decoders(schemas)
        wanted = self._query.position("end" if follow else "start", now_ms)
        until = position_of(self._query.until or "end", "until", now_ms)
        if self._scans.locked():
            raise Problem(UNAVAILABLE, f"{SCANS_MAX} searches are running already; stop one or try again later")
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._scans)
            clients = await stack.enter_async_context(self._context.clients(self._request))
            cluster: Cluster = await stack.enter_async_context(clients.reader.borrowed())
            selection = await select(cluster, self._topic, self._query)
            starts = await selection.starts(cluster, wanted, self._query.isolation)
            stops = await selection.starts(cluster, until, self._query.isolation)
            spans = {
                partition: Span(start, None if follow else max(start, stops[partition]))
                for partition, start in starts.items()
            }
            self._scan = RecordScan(cluster, spans, budget, accepts, decoders, self._query.isolation_level)
            self._stack = stack.pop_all()

    def found(self) -> AbstractAsyncContextManager[AsyncGenerator[ConsumedRecord | ScanProgress, None]]:
        """Read until the end of the block."""
        return aclosing(self._scan.run())

    async def close(self) -> None:
        await self._stack.aclose()


class _ScanResponse(StreamingResponse):
    """Ends the scan with the response, also if the client is gone before the first byte is read."""

    def __init__(
        self, scan: _Scan, content: AsyncGenerator[str, None], media_type: str, headers: dict[str, str]
    ) -> None:
        super().__init__(content, media_type=media_type, headers=headers)
        self._scan = scan
        self._content = content

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with aclosing(self._content):
                await super().__call__(scope, receive, send)
        finally:
            await self._scan.close()


async def _events(scan: _Scan, view: RecordView) -> AsyncGenerator[str, None]:
    """Yield `record` and `progress` events, `problem` if the log cannot be read, and `end` last."""
    try:
        async with scan.found() as everything:
            async for found in everything:
                if isinstance(found, ScanProgress):
                    yield _event("progress" if found.end is None else "end", json.dumps(_progress(found)))
                else:
                    yield _event("record", view.show(found).model_dump_json())
    except (KafkaError, ClientError, CorruptBatchError, TimeoutError) as error:
        yield _event("problem", json.dumps({"detail": str(error)}))


def _event(name: str, data: str) -> str:
    return f"event: {name}\ndata: {data}\n\n"


def _progress(found: ScanProgress) -> dict[str, Any]:
    return {**found._asdict(), "end": None if found.end is None else found.end.value}


async def _lines(scan: _Scan, view: RecordView) -> AsyncGenerator[str, None]:
    """Yield lines in chunks. A failure ends the file early, with a line that says so."""
    waiting, size = [], 0
    try:
        async with scan.found() as everything:
            async for found in everything:
                if isinstance(found, ConsumedRecord):
                    waiting.append(view.show(found).model_dump_json() + "\n")
                    size += len(waiting[-1])
                if size >= CHUNK_BYTES:
                    yield "".join(waiting)
                    waiting, size = [], 0
    except (KafkaError, ClientError, CorruptBatchError, TimeoutError) as error:
        waiting.append(json.dumps({"problem": str(error)}) + "\n")
    yield "".join(waiting)
