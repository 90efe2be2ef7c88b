"""How much of the network replicas that are behind may take to catch up.

Rates are given to a broker (`leader.replication.throttled.rate`, `follower.replication.throttled.rate`), the replicas
to which they apply to a topic. A replica that is in sync is never held back: that would hold back producers.

Room grows with time, up to what the rate gives in a second. What is taken may exceed it, since batches are never cut
short; the debt is then waited for.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sskafka.model.setting import LONG_MAX

ALL = ("*",)


class ThrottledSides(NamedTuple):
    """Whether this broker's replica of a partition is held back, as a leader that sends and as a follower."""

    sending: bool = False
    fetching: bool = False

    @classmethod
    def of(cls, topic_config: Mapping[str, Any], partition: int, broker_id: int) -> "ThrottledSides":
        pair = f"{partition}:{broker_id}"
        leaders = topic_config["leader.replication.throttled.replicas"]
        followers = topic_config["follower.replication.throttled.replicas"]
        return cls(leaders == ALL or pair in leaders, followers == ALL or pair in followers)


class Throttle:
    __slots__ = ("_as_of_ms", "_monotonic_ms", "_rate", "_room_bytes")

    def __init__(self, monotonic_ms: Callable[[], float]) -> None:
        self._monotonic_ms = monotonic_ms
        self._rate = LONG_MAX
        self._room_bytes = 0.0
        self._as_of_ms = 0.0

    def limit_to(self, bytes_per_second: int) -> None:
        if bytes_per_second != self._rate:
            self._rate = bytes_per_second
            self._room_bytes = float(bytes_per_second)
            self._as_of_ms = self._monotonic_ms()

    def take(self, size_bytes: int) -> None:
        if self._rate != LONG_MAX:
            self._grow()
            self._room_bytes -= size_bytes

    def wait_ms(self) -> float:
        """How long there will be no room; 0 when there is."""
        if self._rate == LONG_MAX:
            return 0
        self._grow()
        return max(0.0, -self._room_bytes * 1000 / self._rate)

    def _grow(self) -> None:
        now_ms = self._monotonic_ms()
        grown = self._rate * (now_ms - self._as_of_ms) / 1000
        self._room_bytes = min(self._room_bytes + grown, self._rate)
        self._as_of_ms = now_ms
