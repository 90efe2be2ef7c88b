"""Computations in steps, so that no turn of the event loop is long.

A computation is a generator that yields where other work may come in between, after at most a millisecond or so, and
returns its result. It knows no clock: whoever runs it decides how many steps a turn has. Code for which the time does
not matter runs it to its end at once.
"""

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Computation: TypeAlias = Generator[None, None, T]


def finished(steps: Computation[T]) -> T:
    """Run a computation to its end, and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            result: T = stop.value
            return result
