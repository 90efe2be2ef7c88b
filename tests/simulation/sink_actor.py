"""Somebody in the simulation of the sink: does one request at a time, and anybody may do theirs in between.

An actor is a generator. It yields an effect of the protocol, a request to the brokers (a function), or a `Wait`. An
effect is one request or a generator of several.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from sink_world import BrokersAwayError, FencedProducerError, World

from sskafka.pipelines.connector.errors import ConnectorError

Failures = (ConnectorError, BrokersAwayError, FencedProducerError)
LOST = 0.02


@dataclass(slots=True)
class Wait:
    until: Callable[[], bool]


class Actor:
    __slots__ = ("_answer", "_stack", "error", "is_done", "name", "result", "waits", "wakes_at_ms")

    def __init__(self, name: str, work: Generator[Any, Any, Any]) -> None:
        self.name = name
        self._stack = [work]
        self._answer: Any = None
        self.waits: Callable[[], bool] | None = None
        self.wakes_at_ms = 0.0
        self.is_done = False
        self.result: Any = None
        self.error: Exception | None = None

    def can_step(self, now_ms: float) -> bool:
        if self.is_done or self.wakes_at_ms > now_ms:
            return False
        return self.waits is None or self.waits()

    def step(self, world: World) -> None:
        self.waits = None
        answer, self._answer = self._answer, None
        self._go_on(lambda work: work.send(answer), world)

    def _throw(self, error: Exception, world: World) -> None:
        """What whoever asked does next is done in this step."""
        self._go_on(lambda work: work.throw(error), world)

    def _go_on(self, resume: Callable[[Generator[Any, Any, Any]], Any], world: World) -> None:
        try:
            asked = resume(self._stack[-1])
        except StopIteration as stop:
            self._return(stop.value)
        except Failures as error:
            self._stack.pop()
            if self._stack:
                self._throw(error, world)
            else:
                self.is_done, self.error = True, error
        else:
            self._do(asked, world)

    def _return(self, value: Any) -> None:
        self._stack.pop()
        if self._stack:
            self._answer = value
        else:
            self.is_done, self.result = True, value

    def _do(self, asked: Any, world: World) -> None:
        if isinstance(asked, Wait):
            self.waits = asked.until
            return
        work = asked if callable(asked) else world.perform(asked)
        if isinstance(work, Generator):
            self._stack.append(work)
            return
        is_lost = world.faults and world.rng.random() < LOST
        if is_lost and world.rng.random() < 0.5:
            self._throw(BrokersAwayError("the question was lost"), world)
            return
        try:
            answer = work()
        except (FencedProducerError, BrokersAwayError) as error:
            self._throw(error, world)
            return
        if is_lost:
            self._throw(BrokersAwayError("the answer was lost"), world)
        else:
            self._answer = answer
