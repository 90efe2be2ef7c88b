"""GET /healthcheck, as the lab defines it."""

from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel

from sskafka.servers.http.context import HttpContext


class Health(BaseModel):
    status: Literal["up"] = "up"
    broker_id: int
    leader_broker_id: int
    """-1 while there is no leader."""


def routes(context: HttpContext) -> APIRouter:
    router = APIRouter(tags=["lab"])

    @router.get("/healthcheck", summary="The broker is up")
    async def healthcheck() -> Health:
        return Health(broker_id=context.configuration.node_id, leader_broker_id=context.leader_id)

    return router
