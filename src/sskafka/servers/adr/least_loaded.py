"""Records without a key go where the fewest records are: one decider for each topic, the leader of its partition 0.

    place, place, place  ->  round: count -> choose for each that waits -> append  ->  next round

A round sees every record of the rounds before it: this broker's own logs have them when it begins, and other brokers
have answered for theirs. So any number of producers at once fill the partitions evenly. Partitions that nobody answers
for are left out.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, NamedTuple, TypeAlias

from sskafka.servers.adr.errors import NotTakenError
from sskafka.wire.adr import Produced

Counts: TypeAlias = dict[int, int]
Spawn: TypeAlias = Callable[[Coroutine[Any, Any, None]], object]


class Append(NamedTuple):
    offset: "asyncio.Future[int]"
    is_written: bool
    """Whether who counts now counts the record, wherever its acknowledgement is."""


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
        self._waiting: dict[str, list[_Waiting]] = {}  # by topic; there while its rounds go on

    async def place(self, topic: str, data: bytes) -> Produced:
        """Returns when the record is committed where it was put."""
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
                failure = NotTakenError(f"no partition of {topic!r} has a leader now")
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
    """The partition with the fewest records; the lowest of several."""
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
