"""Completions of coordinator operations: one that can be awaited, and one that nobody waits for."""

import asyncio
from typing import Any

from sskafka.model.errors import ErrorCode, KafkaError


class FutureCompletion:
    __slots__ = ("future",)

    def __init__(self) -> None:
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def answer(self, response: Any) -> None:
        if not self.future.done():
            self.future.set_result(response)

    def refuse(self, error: ErrorCode, message: str = "") -> None:
        """Raised where the answer is awaited."""
        if not self.future.done():
            self.future.set_exception(KafkaError(error, message))


class _Nobody:
    def answer(self, response: Any) -> None:
        pass

    def refuse(self, error: ErrorCode, message: str = "") -> None:
        pass


NOBODY = _Nobody()
