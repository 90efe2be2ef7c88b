"""Place records without a key in the partition with the fewest records. The leader of a topic's partition 0 decides.

    place, place, place  ->  round: count -> choose for each waiting record -> append  ->  next round

A round counts every record of the earlier rounds: this broker's own logs have them when the round begins, and other
brokers have acknowledged theirs. Any number of concurrent producers therefore fill the partitions evenly. Partitions
whose leaders do not answer are left out.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, NamedTuple, TypeAlias

from sskafka.servers.adr.errors import NotAppliedError
from sskafka.wire.adr import Produced

Counts: TypeAlias = dict[int, int]
Spawn: TypeAlias = Callable[[Coroutine[Any, Any, None]], object]


class Append(NamedTuple):
    offset: "asyncio.Future[int]"
    is_written: bool
    """Whether the next count includes the record, even if it is not acknowledged yet."""


class _Waiting(NamedTuple):
    data: bytes
    placed: "asyncio.Future[Produced]"


class LeastLoaded:
    def __init__(
        self,
        record_counts: Callable[[str], Awaitable[Counts]],
        append: Callable[[str, int, bytes], Append],
        spawn: Spawn,
    ) -> None:
        self._record_counts = record_counts
        self._append = append
        self._spawn = spawn
        self._waiting: dict[str, list[_Waiting]] = {}  # by topic; present while its rounds run

    async def place(self, topic: str, data: bytes) -> Produced:
        """Append the record to the least loaded partition. Return when it is committed."""
        waiting = _Waiting(data, asyncio.get_running_loop().create_future())
        if topic in self._waiting:
            self._waiting[topic].append(waiting)
        else:
            self._waiting[topic] = [waiting]
            self._spawn(self._run(topic))
        return await waiting.placed

    async def _run(self, topic: str) -> None:
        while self._waiting[topic]:
            try:
                counts = await self._record_counts(topic)
            except Exception as error:
                counts, failure = {}, error
            else:
                failure = NotAppliedError(f"no partition of {topic!r} has a leader now")
            records, self._waiting[topic] = self._waiting[topic], []
            if counts:
                await self._place_all(topic, records, counts)
            else:
                _fail(records, failure)
        del self._waiting[topic]

    async def _place_all(self, topic: str, records: Iterable[_Waiting], counts: Counts) -> None:
        unwritten = []
        for waiting in records:
            chosen = least_loaded(counts)
            try:
                append = self._append(topic, chosen, waiting.data)
            except Exception as error:
                _fail([waiting], error)
                continue
            counts[chosen] += 1
            append.offset.add_done_callback(_settler(waiting.placed, chosen))
            if not append.is_written:
                unwritten.append(append.offset)
        if unwritten:
            await asyncio.wait(unwritten)


def least_loaded(counts: Counts) -> int:
    """Return the partition with the fewest records, the lowest of several."""
    return min(counts, key=lambda partition: (counts[partition], partition))


def _fail(records: Iterable[_Waiting], error: Exception) -> None:
    for waiting in records:
        if not waiting.placed.done():
            waiting.placed.set_exception(error)


def _settler(placed: "asyncio.Future[Produced]", partition: int) -> Callable[["asyncio.Future[int]"], None]:
    def settle(offset: "asyncio.Future[int]") -> None:
        if placed.done():
            return
        if offset.cancelled():
            placed.cancel()
        elif (error := offset.exception()) is not None:
            placed.set_exception(error)
        else:
            placed.set_result(Produced(offset.result(), partition))

    return settle
