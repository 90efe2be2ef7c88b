"""Run several loads at the same time, each in its own process, and add up their results."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any, NamedTuple

from sskafka.evaluation.latencies import Latencies
from sskafka.evaluation.load import LoadSpec, Window

END_TIMEOUT_S = 10.0


class WorkerError(Exception):
    """A worker failed."""


class Totals(NamedTuple):
    records: int
    size_bytes: int
    seconds: float
    """Time from the common start to the end of the last worker."""
    latencies: Latencies

    @property
    def records_per_second(self) -> float:
        return self.records / self.seconds if self.seconds else 0.0

    @property
    def mb_per_second(self) -> float:
        """In MiB, as in Kafka's tools."""
        return self.size_bytes / 2**20 / self.seconds if self.seconds else 0.0


class Sum:
    """Sum of the windows of several workers."""

    def __init__(self) -> None:
        self.records = 0
        self.size_bytes = 0
        self.latencies = Latencies()

    def add(self, window: Window) -> None:
        self.records += window.records
        self.size_bytes += window.size_bytes
        self.latencies.merge(window.latencies)


async def run_workers(specs: Sequence[LoadSpec], on_window: Callable[[Window], None] | None = None) -> Totals:
    """Return when all workers are done; raise WorkerError if one fails."""
    total = Sum()

    def add(window: Window) -> None:
        total.add(window)
        if on_window is not None:
            on_window(window)

    async with AsyncExitStack() as stack:
        workers = [await Worker.start(spec) for spec in specs]
        for worker in workers:
            stack.push_async_callback(worker.end)
        for worker in workers:
            await worker.ready()
        began_s = asyncio.get_running_loop().time()
        for worker in workers:
            worker.go()
        await asyncio.gather(*(worker.finish(add) for worker in workers))
        seconds = asyncio.get_running_loop().time() - began_s
    return Totals(total.records, total.size_bytes, seconds, total.latencies)


class Worker:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._orders = process.stdin
        self._lines = process.stdout

    @classmethod
    async def start(cls, spec: LoadSpec) -> "Worker":
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "sskafka.evaluation.worker"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            limit=2**20,
        )
        worker = cls(process)
        worker._orders.write(json.dumps(spec.to_json()).encode() + b"\n")
        return worker

    async def ready(self) -> None:
        await self._next()

    def go(self) -> None:
        self._orders.write(b"go\n")

    async def finish(self, on_window: Callable[[Window], None]) -> None:
        while "done" not in (values := await self._next()):
            on_window(Window.from_json(values))

    async def end(self) -> None:
        """End the process."""
        self._orders.close()
        try:
            await asyncio.wait_for(self._process.wait(), END_TIMEOUT_S if self._lines.at_eof() else 0.01)
        except TimeoutError:
            with suppress(ProcessLookupError):  # it has ended in the meantime
                self._process.kill()
            await self._process.wait()

    async def _next(self) -> dict[str, Any]:
        line = await self._lines.readline()
        values: dict[str, Any] = json.loads(line) if line else {"error": "the process ended without a message"}
        if "error" in values:
            raise WorkerError(values["error"])
        return values
