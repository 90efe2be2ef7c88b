"""Exponential backoff between attempts, with jitter so that many clients do not retry at the same moment."""

from typing import Protocol

from sskafka.model.values import value


class Randomness(Protocol):
    """Random numbers for a backoff; `random.Random` implements this."""

    def random(self) -> float:
        """Return a number in [0, 1)."""
        ...


@value
class Backoff:
    initial_ms: int
    max_ms: int
    random: Randomness
    jitter: float = 0.2

    def delay_ms(self, attempt: int) -> float:
        """Return the pause after failure number `attempt`, counted from 0."""
        grown = min(self.initial_ms * 2.0 ** min(attempt, 30), self.max_ms)
        return grown * (1 - self.jitter + 2 * self.jitter * self.random.random())
