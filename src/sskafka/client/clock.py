"""The operating system's clock: for clients that run by themselves, and what the composition root gives a broker."""

import time


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return time.monotonic() * 1000
