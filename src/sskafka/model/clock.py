"""The clock as an argument: nothing below the composition root asks the operating system for the time."""

from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall-clock milliseconds since 1970: for timestamps that people and records see."""
        ...

    def monotonic_ms(self) -> float:
        """Milliseconds that never run backwards: for every timeout and deadline."""
        ...
