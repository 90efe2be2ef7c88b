"""Errors behind the HTTP server, as clients receive them."""

import asyncio

import httpx
import pytest
from fastapi import FastAPI

from sskafka.client.errors import BrokerUnavailableError
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.servers.http.problems import handle_problems
from sskafka.servers.http.record_writer import MaybeStoredError


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (MaybeStoredError("nobody knows"), 504),
        (BrokerUnavailableError("nobody there"), 503),
        (KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "led elsewhere"), 503),
        (KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no such topic"), 404),
    ],
)
def test_only_what_was_surely_not_stored_may_be_tried_again(error: Exception, status: int) -> None:
    app = FastAPI()
    handle_problems(app)

    @app.post("/records")
    async def fail() -> None:
        raise error

    async def post() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            return await client.post("/records")

    answer = asyncio.run(post())
    assert (answer.status_code, list(answer.json())) == (status, ["detail"])
