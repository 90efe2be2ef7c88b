"""One broker of a machine as a child process, from start to exit.

The child prints its READY line to a pipe; its log goes to the stderr of the parent. Its standard input is a pipe that
nobody writes to: it ends when the parent dies, even by SIGKILL, and the child stops cleanly then. Children have their
own process groups, so that Ctrl+C reaches them once, through their parent.
"""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sskafka.cli.broker_child import BrokerChild

READY = "READY"


class StartCommand(NamedTuple):
    """The command line that the brokers of a machine share."""

    file: str | None
    overrides: Sequence[str]
    log_level: str

    def words(self, home: str, own: Mapping[str, str], inherited: Mapping[str, int]) -> list[str]:
        """Return the command of one broker: its own settings come last and win."""
        pairs = [*self.overrides, *(f"{key}={value}" for key, value in own.items())]
        options = [word for pair in pairs for word in ("--set", pair)]
        sockets = [word for name, fd in inherited.items() for word in ("--inherit", f"{name}={fd}")]
        files = [self.file] if self.file is not None else []
        program = (sys.executable, "-m", "sskafka", "start")
        return [*program, *files, *options, "--log-level", self.log_level, "--member", home, *sockets]


class MemberProcess(BrokerChild):
    @classmethod
    async def start(cls, node_id: int, words: Sequence[str], descriptors: Sequence[int] = ()) -> "MemberProcess":
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=descriptors,
            process_group=0,
        )
        return cls(node_id, process)

    async def ready(self) -> dict[str, str]:
        """Return the addresses in the READY line. Raise EOFError if the process ends before it is ready."""
        assert self._process.stdout is not None
        line = (await self._process.stdout.readline()).decode()
        if not line.startswith(READY):
            await self.ended()
            raise EOFError(self.exit_text())
        return dict(word.split("=", 1) for word in line.split()[1:])
