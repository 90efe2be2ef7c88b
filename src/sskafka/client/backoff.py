"""How long to wait before the next attempt: exponential, with jitter so that many clients do not return together."""

from typing import Protocol

from sskafka.model.values import value


class Randomness(Protocol):
    """The one draw that a backoff needs; `random.Random` has it."""

    def random(self) -> float:
        """A number from 0 up to, not including, 1."""
        ...


@value
class Backoff:
    initial_ms: int
    max_ms: int
    random: Randomness
    jitter: float = 0.2

    def delay_ms(self, attempt: int) -> float:
        """The pause after failure number `attempt`, counted from 0."""
        grown = min(self.initial_ms * 2.0 ** min(attempt, 30), self.max_ms)
        return grown * (1 - self.jitter + 2 * self.jitter * self.random.random())
