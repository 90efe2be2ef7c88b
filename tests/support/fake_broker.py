"""A broker whose every answer is written by the test: real sockets, no log, no rules."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Self

from sskafka.client.connection import Address
from sskafka.wire.apis import API_BY_KEY
from sskafka.wire.codec import decode, encode
from sskafka.wire.header import RequestHeader, decode_request_header, encode_response_header
from sskafka.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from sskafka.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

Answer = Callable[[Any, int], Any]
"""(request, version) -> response, an awaitable of one, raw bytes of a whole frame, None for silence, or HANG_UP."""

HANG_UP = object()


class FakeBroker:
    """`answers` by request class. ApiVersions and Metadata (`topics`: name -> partition count) have answers already."""

    def __init__(self, answers: dict[type, Answer] | None = None, topics: dict[str, int] | None = None) -> None:
        self.topics = topics or {}
        self.answers: dict[type, Answer] = {
            ApiVersionsRequest: lambda request, version: api_versions(),
            MetadataRequest: self.metadata,
            **(answers or {}),
        }
        self.requests: list[Any] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = Address(*self._server.sockets[0].getsockname())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in self._writers:
            writer.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def bootstrap(self) -> str:
        return str(self.address)

    def seen(self, request_class: type) -> list[Any]:
        return [request for request in self.requests if isinstance(request, request_class)]

    def hang_up(self) -> None:
        for writer in self._writers:
            writer.close()

    def metadata(self, request: MetadataRequest, version: int) -> MetadataResponse:
        names = list(self.topics) if request.topics is None else [topic.name for topic in request.topics]
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=1, host=self.address.host, port=self.address.port)],
            controller_id=1,
            cluster_id="fake",
            topics=[self._topic(name) for name in names],
        )

    def _topic(self, name: str) -> MetadataResponseTopic:
        if name not in self.topics:
            return MetadataResponseTopic(error_code=3, name=name)
        partitions = [
            MetadataResponsePartition(
                partition_index=number, leader_id=1, leader_epoch=5, replica_nodes=[1], isr_nodes=[1]
            )
            for number in range(self.topics[name])
        ]
        return MetadataResponseTopic(name=name, topic_id=name.encode().ljust(16), partitions=partitions)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                task = asyncio.ensure_future(self._handle(await reader.readexactly(size), writer))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _handle(self, frame: bytes, writer: asyncio.StreamWriter) -> None:
        header = decode_request_header(frame)
        request_class = API_BY_KEY[header.api_key].request_class()
        request = decode(request_class, header.api_version, frame, header.body_position)
        self.requests.append(request)
        answer = self.answers[request_class](request, header.api_version)
        if isinstance(answer, Awaitable):
            answer = await answer
        if answer is HANG_UP:
            writer.close()
        elif answer is not None:
            writer.write(self._frame(header, answer))

    @staticmethod
    def _frame(header: RequestHeader, answer: Any) -> bytes:
        if isinstance(answer, bytes):
            return answer
        head = encode_response_header(header.api_key, header.api_version, header.correlation_id)
        body = head + encode(answer, header.api_version)
        return len(body).to_bytes(4, "big") + body


def api_versions(**limits: tuple[int, int]) -> ApiVersionsResponse:
    """Everything that the wire package knows; `Fetch=(4, 12)` narrows one API."""
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(key, *limits.get(api.name, (api.min_version, api.max_version)))
            for key, api in API_BY_KEY.items()
        ]
    )
