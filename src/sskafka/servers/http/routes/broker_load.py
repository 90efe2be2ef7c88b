"""Counters of the brokers since their start. The console reads them at intervals and draws the rates."""

from collections.abc import Iterable, Mapping
from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from sskafka.client.broker_load import broker_loads
from sskafka.servers.http.context import HttpContext
from sskafka.wire.messages.describe_broker_load import DescribeBrokerLoadResponse, RequestLoad


class BrokerCounters(BaseModel):
    node_id: int
    version: str
    cores: int
    uptime_ms: int
    cpu_ms: Annotated[int, Field(description="Processor time of the broker's process.")]
    memory_bytes: int
    connections: int
    messages_in: int
    bytes_in: int
    bytes_out: Annotated[int, Field(description="Bytes of records sent to clients, not to other brokers.")]
    replication_bytes_in: int
    replication_bytes_out: int


class ApiCounters(BaseModel):
    name: str
    requests: int
    errors: int
    latency_buckets: Annotated[
        list[int],
        Field(
            description="Responses by latency: bucket n has those of less than 2^n µs and not less than half of that."
        ),
    ]


class Load(BaseModel):
    time_ms: int
    brokers: Annotated[list[BrokerCounters], Field(description="The brokers that answered.")]
    requests: Annotated[list[ApiCounters], Field(description="Requests by API, over all brokers.")]


def routes(context: HttpContext) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["inspection"])

    @router.get("/load", summary="Counters of all brokers since their start: traffic, requests and their latencies")
    async def load(request: Request) -> Load:
        async with context.clients(request) as clients:
            return load_of(await broker_loads(clients.cluster), context.clock.now_ms())

    return router


def load_of(loads: Mapping[int, DescribeBrokerLoadResponse], now_ms: int) -> Load:
    return Load(
        time_ms=now_ms,
        brokers=[_counters(node_id, load) for node_id, load in sorted(loads.items())],
        requests=_requests(loads.values()),
    )


def _counters(node_id: int, load: DescribeBrokerLoadResponse) -> BrokerCounters:
    fields = BrokerCounters.model_fields.keys() - {"node_id"}
    return BrokerCounters(node_id=node_id, **{name: getattr(load, name) for name in fields})


def _requests(loads: Iterable[DescribeBrokerLoadResponse]) -> list[ApiCounters]:
    found: dict[str, list[RequestLoad]] = {}
    for load in loads:
        for counters in load.requests:
            found.setdefault(counters.name, []).append(counters)
    return [
        ApiCounters(
            name=name,
            requests=sum(one.requests for one in every),
            errors=sum(one.errors for one in every),
            latency_buckets=[sum(bucket) for bucket in zip(*(one.latency_buckets for one in every), strict=True)],
        )
        for name, every in sorted(found.items())
    ]
