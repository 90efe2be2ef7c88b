"""Placement of records without a key, while other brokers answer late or not at all."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from sskafka.servers.adr.errors import NotAppliedError
from sskafka.servers.adr.least_loaded import Append, LeastLoaded, least_loaded
from sskafka.wire.adr import Produced


class Logs:
    """Partitions by number of records; those in `remote` are written a few turns after they were asked."""

    def __init__(self, counts: dict[int, int], remote: set[int] | None = None) -> None:
        self.counts = counts
        self.remote = remote or set()
        self.unreachable: set[int] = set()
        self.tasks: set[asyncio.Task[Any]] = set()
        self.rounds = 0

    async def record_counts(self, topic: str) -> dict[int, int]:
        self.rounds += 1
        if self.remote:
            await asyncio.sleep(0)
        return {index: count for index, count in self.counts.items() if index not in self.unreachable}

    def append(self, topic: str, index: int, data: bytes) -> Append:
        if data == b"too large":
            raise ValueError("too large")
        if index in self.remote:
            return Append(self.spawn(self._write_later(index)), is_written=False)
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        future.set_result(self._write(index))
        return Append(future, is_written=True)

    async def _write_later(self, index: int) -> int:
        for _ in range(3):
            await asyncio.sleep(0)
        return self._write(index)

    def _write(self, index: int) -> int:
        self.counts[index] += 1
        return self.counts[index] - 1

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task


def run(logs: Logs, scenario: Callable[[LeastLoaded], Awaitable[Any]]) -> Any:
    async def work() -> Any:
        return await scenario(LeastLoaded(logs.record_counts, logs.append, logs.spawn))

    return asyncio.run(work())


def test_ties_go_to_the_lowest_partition() -> None:
    assert least_loaded({2: 5, 0: 5, 1: 5}) == 0
    assert least_loaded({2: 4, 0: 5, 1: 4}) == 1


@pytest.mark.parametrize("remote", [set(), {1}, {0, 1, 2}], ids=["here", "one elsewhere", "all elsewhere"])
@pytest.mark.parametrize("counts", [{0: 0, 1: 0, 2: 0}, {0: 30, 1: 0, 2: 3}], ids=["empty", "uneven"])
def test_any_number_of_producers_fill_the_partitions_evenly(remote: set[int], counts: dict[int, int]) -> None:
    logs = Logs(dict(counts), remote)

    async def producer(balancer: LeastLoaded) -> list[Produced]:
        return [await balancer.place("t", b"x") for _ in range(11)]

    async def scenario(balancer: LeastLoaded) -> list[Produced]:
        placed = await asyncio.gather(*(producer(balancer) for _ in range(9)))
        return [one for some in placed for one in some]

    placed = run(logs, scenario)
    total = sum(counts.values()) + 99
    assert sorted(logs.counts.values()) == sorted([total // 3] * 3)
    assert Counter(one.partition for one in placed) == {
        index: count - counts[index] for index, count in logs.counts.items()
    }
    assert len(set(placed)) == 99, "no place is given twice"


def test_those_who_wait_together_share_a_round() -> None:
    logs = Logs({0: 0, 1: 0})

    async def scenario(balancer: LeastLoaded) -> None:
        await asyncio.gather(*(balancer.place("t", b"x") for _ in range(10)))

    run(logs, scenario)
    assert logs.rounds == 1
    assert logs.counts == {0: 5, 1: 5}


def test_partitions_that_nobody_answers_for_are_left_out() -> None:
    logs = Logs({0: 0, 1: 5})
    logs.unreachable = {0}
    assert run(logs, lambda balancer: balancer.place("t", b"x")) == Produced(5, 1)
    logs.unreachable = {0, 1}
    with pytest.raises(NotAppliedError, match="has a leader"):
        run(logs, lambda balancer: balancer.place("t", b"x"))


def test_a_record_that_is_refused_fails_alone() -> None:
    logs = Logs({0: 0})

    async def scenario(balancer: LeastLoaded) -> list[Any]:
        work = (balancer.place("t", data) for data in (b"a", b"too large", b"b"))
        return await asyncio.gather(*work, return_exceptions=True)

    first, refused, second = run(logs, scenario)
    assert (first, second) == (Produced(0, 0), Produced(1, 0))
    assert isinstance(refused, ValueError)
