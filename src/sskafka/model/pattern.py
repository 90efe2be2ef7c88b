"""Regular expressions of clients, matched by RE2 in time proportional to pattern and text.

With Python's own expressions, any client could send a pattern that runs forever. RE2 has limits of its own that matter
for patterns of untrusted clients:

- Capturing groups turn its fast automaton off: a pattern of 10,000 brackets took two seconds for one name. Nobody asks
  for the groups, so they are not captured.
- Its time is at worst the size of the compiled pattern times the length of the text, some 4.5 ns for each instruction
  and byte. So the size has a maximum, and so has that product, because nothing interrupts a match.
- Compiling takes time in proportion to the size, too, and more for classes of Unicode: a pattern of 2,000 characters
  took 0.3 seconds before it was found to be too large. So compiling has a memory limit, and such classes are counted.
"""

from typing import Any, Final

PROGRAM_SIZE_MAX: Final = 10_000
"""Instructions of a compiled pattern. A hundred topic names of 30 characters, separated by `|`, have 3,000."""
CHARACTERS_MAX: Final = 2048
UNICODE_CLASSES_MAX: Final = 16
"""Compiling one class, such as `\\pL`, takes 0.2 ms."""
MEMORY_BYTES_MAX: Final = 512 * 1024
"""RE2 stops compiling at about 30,000 instructions. The rest is for its automaton, enough for patterns below them."""


NAME_WORK_MAX: Final = 4_000_000
"""Instructions times bytes of one name, which take up to 20 ms. The largest patterns match names of up to 400 bytes."""


class InvalidPatternError(ValueError):
    """The text is not a regular expression, or too large a one."""


class SlowPatternError(Exception):
    """The pattern took too much CPU time, or might take too much."""


class Pattern:
    __slots__ = ("_compiled", "size")

    def __init__(self, text: str, program_size_max: int = PROGRAM_SIZE_MAX) -> None:
        """Raise InvalidPatternError if the pattern cannot be used."""
        if len(text) > CHARACTERS_MAX or text.count("\\p") + text.count("\\P") > UNICODE_CLASSES_MAX:
            raise InvalidPatternError("pattern too large")
        import re2  # noqa: PLC0415  loaded by the first who needs it

        options = re2.Options()
        options.log_errors = False
        options.never_capture = True
        options.max_mem = MEMORY_BYTES_MAX
        try:
            self._compiled: Any = re2.compile(text, options)
        except re2.error as error:
            reason = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
            raise InvalidPatternError(reason) from error
        self.size: int = self._compiled.programsize
        """Instructions of the compiled pattern."""
        if self.size > program_size_max:
            raise InvalidPatternError("pattern too large")

    def matches(self, name: str) -> bool:
        """Return whether the pattern matches the whole name. Raise SlowPatternError if that may take too long."""
        text = name.encode()
        if self.size * len(text) > NAME_WORK_MAX:
            raise SlowPatternError
        return self._compiled.fullmatch(text) is not None

    def is_in(self, text: str) -> bool:
        """Return whether the pattern matches anywhere in the text."""
        return self._compiled.search(text) is not None
