"""The broker's handle of one cleaner process: it accepts jobs, yields answers, and can be ended at any time.

A thread starts the process, because that blocks. The event loop talks to it through pipes.
"""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from concurrent.futures import Executor
from contextlib import suppress

from sskafka.storage.compaction.cleaning_job import (
    Answer,
    CleanedGroup,
    CleaningFailure,
    CleaningJob,
    decode_answer,
    encode_job,
)

ANSWER_BYTES_MAX = 1 << 24
"""A group may consist of many thousands of tiny segments, all of which are named in the answer."""
COMMAND = (sys.executable, "-m", "sskafka.storage.compaction.process")


class CleanerChild:
    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        answers: asyncio.StreamReader,
        output: asyncio.BaseTransport,
        executor: Executor,
    ) -> None:
        self._process = process
        self._answers = answers
        self._output = output
        self._executor = executor
        self.is_alive = True

    @classmethod
    async def start(cls, executor: Executor) -> "CleanerChild":
        loop = asyncio.get_running_loop()
        process = await loop.run_in_executor(executor, _spawn)
        reader = asyncio.StreamReader(limit=ANSWER_BYTES_MAX)
        output, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), process.stdout)
        return cls(process, reader, output, executor)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def clean(self, job: CleaningJob) -> AsyncIterator[Answer]:
        """Yield the groups, then the result. A child that has exited must not be used again."""
        loop = asyncio.get_running_loop()
        with suppress(OSError):  # the child has exited; the answers say so too
            await loop.run_in_executor(self._executor, self._send, encode_job(job))
        while True:
            line = await self._answers.readline()
            if not line.endswith(b"\n"):
                yield await self._ended()
                return
            answer = decode_answer(line)
            yield answer
            if not isinstance(answer, CleanedGroup):
                return

    def _send(self, line: bytes) -> None:
        """Send the job, which may be larger than the pipe's buffer if it names many producers."""
        stdin = self._process.stdin
        assert stdin is not None
        stdin.write(line)
        stdin.flush()

    async def _ended(self) -> CleaningFailure:
        await self.end()
        return CleaningFailure(f"the cleaner ended with status {self._process.returncode}")

    @property
    def was_killed(self) -> bool:
        """Whether a signal ended the process."""
        return self._process.returncode is not None and self._process.returncode < 0

    async def end(self) -> None:
        """End the process, whatever it is doing, and wait for its exit."""
        self.is_alive = False
        await asyncio.get_running_loop().run_in_executor(self._executor, self._reap)
        self._output.close()

    def end_now(self) -> None:
        """Like `end`, but without waiting, for a broker that stops."""
        self.is_alive = False
        self._reap()
        self._output.close()

    def _reap(self) -> None:
        process = self._process
        if process.poll() is None and not self._has_closed_output():
            process.kill()
        process.wait()
        if process.stdin is not None:
            with suppress(BrokenPipeError):
                process.stdin.close()

    def _has_closed_output(self) -> bool:
        """Return whether the process is exiting by itself. Its exit status will follow."""
        return self._answers.at_eof()


def _spawn() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
