"""Run generators of the program to their end."""

from collections.abc import Generator
from typing import Any, TypeVar

T = TypeVar("T")


def finished(steps: Generator[Any, Any, T]) -> T:
    """The value that the generator returns."""
    try:
        while True:
            next(steps)
    except StopIteration as stop:
        value: T = stop.value
        return value
