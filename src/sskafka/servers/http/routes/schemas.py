"""Which schemas this broker has for the keys and values of a topic."""

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from sskafka.servers.http.browsing.payloads import Schema
from sskafka.servers.http.context import HttpContext
from sskafka.servers.http.problems import NOT_FOUND, documented
from sskafka.servers.http.routes.paging import Name


class SchemaSummary(BaseModel):
    encoding: Annotated[str, Field(description="avro or protobuf")]
    name: Annotated[str, Field(description="Of the record or message; empty if it has none.")]
    problem: Annotated[str | None, Field(description="Why it cannot be used.")]


class TopicSchemas(BaseModel):
    key: Annotated[SchemaSummary | None, Field(description="null: the broker has none.")]
    value: SchemaSummary | None


def routes(context: HttpContext) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["records"])

    @router.get(
        "/topics/{topic_name}/schemas",
        summary="The schemas by which this broker shows keys and values, unless a request has its own",
        responses=documented({NOT_FOUND: "There is no such topic."}),
    )
    async def schemas(topic_name: Name, request: Request) -> TopicSchemas:
        async with context.clients(request) as clients:
            await clients.cluster.topic(topic_name)
        key, value = (context.schemas.find(topic_name, part) for part in ("key", "value"))
        return TopicSchemas(key=_summary(key), value=_summary(value))

    return router


def _summary(schema: Schema | None) -> SchemaSummary | None:
    if schema is None:
        return None
    return SchemaSummary(encoding=schema.encoding.value, name=schema.name, problem=schema.problem)
