"""A ControllerChannel for AlterPartition around a function that sends requests to the active controller."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeAlias

from sskafka.replication.cluster_links import Answered
from sskafka.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from sskafka.wire.schema import Message

Ask: TypeAlias = Callable[[Message, int], Awaitable[Any]]
"""Sends a request to the active controller, with a timeout in ms."""
Spawn: TypeAlias = Callable[[Coroutine[Any, Any, None]], object]

TIMEOUT_MS = 5_000


class ControllerRequests:
    def __init__(self, ask: Ask, spawn: Spawn) -> None:
        self._ask = ask
        self._spawn = spawn

    def alter_partition(self, request: AlterPartitionRequest, answered: Answered[AlterPartitionResponse]) -> None:
        self._spawn(self._exchange(request, answered))

    async def _exchange(self, request: AlterPartitionRequest, answered: Answered[AlterPartitionResponse]) -> None:
        answer: AlterPartitionResponse | Exception
        try:
            answer = await self._ask(request, TIMEOUT_MS)
        except Exception as error:  # any failure: the partition sends the request again
            answer = error
        answered(answer)
