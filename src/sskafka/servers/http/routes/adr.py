"""ADR-0011 over REST: the same service as that of the binary protocol, reached over the private socket.

`data` is base64. An answer has the field `error`, which is null unless the status is an error.
"""

import base64
import binascii
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field, field_validator

from sskafka.servers.http.caller import caller_of
from sskafka.servers.http.context import HttpContext, at_most
from sskafka.servers.http.problems import BAD_REQUEST, FORBIDDEN, INTERNAL, NOT_FOUND, UNAVAILABLE, UNCLEAR, Problem
from sskafka.servers.http.texts import Text

OFFSET_MAX = 2**63 - 2
PARTITION_MAX = 2**31 - 1
BATCH_SIZE_MAX = 100_000

_STATUSES = {
    "invalid": BAD_REQUEST,
    "denied": FORBIDDEN,
    "missing": NOT_FOUND,
    "unavailable": UNAVAILABLE,
    "unclear": UNCLEAR,
}

Offset = Annotated[int, Query(ge=-OFFSET_MAX, le=OFFSET_MAX, description="Offset of the first message; not negative.")]
Partition = Annotated[
    int | None,
    Query(
        ge=-PARTITION_MAX,
        le=PARTITION_MAX,
        description="Counted from 0; by default the partition with the most records.",
    ),
]
BatchSize = Annotated[
    int, Query(ge=0, alias="batchSize", description="Maximum number of messages."), at_most(BATCH_SIZE_MAX)
]


class ProduceRequest(BaseModel):
    key: Annotated[
        Text | None, Field(description="Selects the partition; by default the one with the fewest records.")
    ] = None
    data: Annotated[str, Field(description="Base64.", examples=["aGVsbG8="])]

    @field_validator("data")
    @classmethod
    def check_base64(cls, text: str) -> str:
        try:
            base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError) as error:
            raise ValueError(f"not base64: {error}") from error
        return text


class ProduceAnswer(BaseModel):
    partition: int = -1
    offset: int = -1
    error: str | None = None


class Message(BaseModel):
    offset: int
    data: str


class ConsumeAnswer(BaseModel):
    messages: list[Message]
    nextOffset: int  # noqa: N815
    error: str | None = None
    partition: Annotated[int, Field(description="Present when the broker chose it.")] = -1


def routes(context: HttpContext) -> APIRouter:
    router = APIRouter(tags=["adr-0011"])

    @router.post(
        "/topics/{topic}/produce",
        summary="Store a message",
        response_model=ProduceAnswer,
        responses=_refusals(ProduceAnswer),
    )
    async def produce(topic: str, body: ProduceRequest, request: Request) -> JSONResponse:
        details = {"topic": topic, "key": body.key, "data": body.data}
        answer = await context.link.ask("adr_produce", **details, **caller_of(request)._asdict())
        if "error" in answer:
            return JSONResponse({"partition": -1, "offset": -1, "error": answer["error"]}, _status(answer))
        return JSONResponse({"partition": answer["partition"], "offset": answer["offset"], "error": None})

    @router.get(
        "/topics/{topic}/consume",
        summary="Read messages",
        response_model=ConsumeAnswer,
        responses=_refusals(ConsumeAnswer),
    )
    async def consume(
        topic: str, request: Request, partition: Partition = None, offset: Offset = 0, batch_size: BatchSize = 100
    ) -> JSONResponse:
        details = {"topic": topic, "partition": partition, "offset": offset, "batch_size": batch_size}
        answer = await context.link.ask("adr_consume", **details, **caller_of(request)._asdict())
        if "error" in answer:
            refusal = {"messages": [], "nextOffset": offset, "error": answer["error"]}
            return JSONResponse(refusal, _status(answer))
        found = {"messages": answer["messages"], "nextOffset": answer["next_offset"], "error": None}
        return JSONResponse(found if partition is not None else found | {"partition": answer["partition"]})

    @router.post("/admin/flush", summary="Flush all logs to disk", status_code=204, response_class=Response)
    async def flush(request: Request) -> Response:
        answer = await context.link.ask("adr_flush", **caller_of(request)._asdict())
        if "error" in answer:
            raise Problem(FORBIDDEN if answer["kind"] == "denied" else UNAVAILABLE, answer["error"])
        return Response(status_code=204)

    return router


def _refusals(body: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    return {
        BAD_REQUEST: {"model": body, "description": "The request is invalid."},
        FORBIDDEN: {"model": body, "description": "An ACL is missing, or the request is from another site."},
        NOT_FOUND: {"model": body, "description": "There is no such topic or partition."},
        INTERNAL: {"model": body, "description": "The request failed; `error` says why."},
        UNAVAILABLE: {"model": body, "description": "Temporarily unavailable; not applied, safe to retry."},
        UNCLEAR: {"model": body, "description": "Outcome unknown; the message may or may not be stored."},
    }


def _status(answer: dict[str, Any]) -> int:
    return _STATUSES.get(answer["kind"], INTERNAL)
