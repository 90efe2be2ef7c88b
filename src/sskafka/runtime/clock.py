"""The clock as an argument: only the composition root reads the operating system's time."""

import time
from typing import Protocol

from sskafka.model.native import mypyc_attr


class Clock(Protocol):
    def now_ms(self) -> int:
        """Return wall-clock milliseconds since 1970, for timestamps of records and for people."""
        ...

    def monotonic_ms(self) -> float:
        """Return monotonic milliseconds, for every timeout and deadline."""
        ...


@mypyc_attr(allow_interpreted_subclasses=True)
class SystemClock:
    """The operating system's clock, for brokers and for clients without one."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return time.monotonic() * 1000
