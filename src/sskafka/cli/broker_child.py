"""A broker as a child process of this command, from start to exit."""

import asyncio
import signal


class BrokerChild:
    def __init__(self, node_id: int, process: asyncio.subprocess.Process) -> None:
        self.node_id = node_id
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.returncode is not None

    @property
    def has_failed(self) -> bool:
        return bool(self._process.returncode)

    async def ended(self) -> None:
        await self._process.wait()

    def send(self, number: signal.Signals) -> None:
        if not self.has_ended:
            self._process.send_signal(number)

    def exit_text(self) -> str:
        """Describe how the process exited."""
        code = self._process.returncode
        assert code is not None, "it runs"
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"
        return f"broker {self.node_id} (process {self.pid}) {how}"
