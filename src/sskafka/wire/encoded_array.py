"""An array of a message that was encoded before the message is.

The elements of a long array, as objects, take many times the memory and time of their bytes. Code that can write the
bytes itself puts an `EncodedArray` into the message; the encoders of flexible versions copy it.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar, cast, overload

T = TypeVar("T")


class EncodedArray(Sequence[T], Generic[T]):
    """`encoded`: the array of a flexible version, from its length on. `elements` returns the same as objects, for
    readers other than encoders."""

    __slots__ = ("_elements", "encoded")

    def __init__(self, encoded: bytes, elements: Callable[[], Sequence[T]]) -> None:
        self.encoded = encoded
        self._elements = elements

    def as_list(self) -> list[T]:
        """Return this array as the type that fields of messages have."""
        return cast("list[T]", self)

    def __len__(self) -> int:
        return len(self._elements())

    def __iter__(self) -> Iterator[T]:
        return iter(self._elements())

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...

    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._elements()[index]

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))
