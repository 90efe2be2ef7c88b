"""Writer of Python source code: indented lines, unique names, and the constants that the source refers to."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class SourceWriter:
    def __init__(self, globals_: dict[str, Any]) -> None:
        self._lines: list[str] = []
        self._indentation = ""
        self._count = 0
        self.globals = dict(globals_)

    def line(self, text: str) -> None:
        self._lines.append(self._indentation + text)

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        self.line(opening)
        outer, self._indentation = self._indentation, self._indentation + " "
        yield
        self._indentation = outer

    def fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def constant(self, prefix: str, value: Any) -> str:
        """Return a new global name for `value`."""
        name = self.fresh(prefix)
        self.globals[name] = value
        return name

    def packer(self, format_: str) -> str:
        return self.constant("pack", struct.Struct(">" + format_).pack)

    def unpacker(self, format_: str) -> str:
        return self.constant("unpack", struct.Struct(">" + format_).unpack_from)

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"
