"""A stage, which tests one ability of the program, and the tools that stages use."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Self

from sskafka.challenge.comparison import differences
from sskafka.challenge.connection import Connection, NoAnswerError
from sskafka.challenge.grammar import Answer, UnreadableAnswerError, read_answer
from sskafka.challenge.program import Program
from sskafka.challenge.requests import Request
from sskafka.challenge.topics import ChallengeTopics

Expected = Mapping[str, object] | Callable[[Answer], Mapping[str, object]]
"""Expected values by path; a function of the response if the program may choose the order."""

_ROW_BYTES = 16


class StageFailedError(Exception):
    """`findings` are the errors found, one line each."""

    def __init__(self, *findings: str) -> None:
        super().__init__("\n".join(findings))
        self.findings = findings


class StageContext:
    """Tools of a stage: the running program, the prepared topics, and methods to send requests and check responses."""

    def __init__(
        self,
        topics: ChallengeTopics,
        directory: Path,
        program: Program,
        say: Callable[[str], None],
        answer_seconds_max: float,
    ) -> None:
        self.topics = topics
        self.directory = directory
        self.program = program
        self.say = say
        self._answer_seconds_max = answer_seconds_max
        self._connections = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connections.close()

    def connect(self) -> Connection:
        """Return a connection that is closed at the end of the stage."""
        return self._connections.enter_context(Connection(self.program.port, self._answer_seconds_max))

    def ask(self, request: Request, expected: Expected = MappingProxyType({})) -> Answer:
        """Send one request on its own connection and check the response."""
        connection = self.connect()
        return self.check(connection, request, self.send(connection, request), expected)

    def send(self, connection: Connection, request: Request) -> int:
        """Send the request with a new correlation id, and return the id."""
        correlation_id = self.topics.correlation_id()
        self.say(f"-> {request.name}, correlation id {correlation_id}")
        connection.send(request.frame(correlation_id))
        return correlation_id

    def check(
        self,
        connection: Connection,
        request: Request,
        correlation_id: int,
        expected: Expected = MappingProxyType({}),
    ) -> Answer:
        """Receive the next response, which must be the one to `request` and have the expected values."""
        try:
            data = connection.receive()
        except NoAnswerError as error:
            raise StageFailedError(f"{request.name}: {error}") from error
        self.say(f"<- {len(data)} bytes")
        answer = _read(request, data)
        wanted = expected(answer) if callable(expected) else expected
        wrong = list(differences(answer, {"correlation_id": correlation_id, **wanted}))
        if wrong:
            raise StageFailedError(f"the response to {request.name} differs:", *wrong, *hex_rows(data))
        for path in wanted:
            self.say(f"   {path} is correct")
        return answer


def _read(request: Request, data: bytes) -> Answer:
    try:
        return read_answer(request.answer, data, prefix=request.prefix)
    except UnreadableAnswerError as error:
        before = [f"  {field.path} ({field.location}): {field.value!r}" for field in error.fields[-5:]]
        raise StageFailedError(
            f"cannot decode the response to {request.name}: {error}", *before, *hex_rows(data, error.position)
        ) from error


def hex_rows(data: bytes, position: int | None = None) -> list[str]:
    """Return a hex dump; of a long response, the bytes around `position`, or its start."""
    middle = 0 if position is None else position - position % _ROW_BYTES
    first = max(0, middle - 2 * _ROW_BYTES)
    rows = [(at, data[at : at + _ROW_BYTES]) for at in range(first, min(len(data), first + 6 * _ROW_BYTES), _ROW_BYTES)]
    lines = [f"  {at:6d}  {row.hex(' '):<47}  {_printable(row)}" for at, row in rows]
    if position is not None and rows:
        lines.append(f"  decoding stopped at byte {position} of {len(data)}")
    return lines


def _printable(row: bytes) -> str:
    return "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)


class Stage(NamedTuple):
    slug: str
    title: str
    run: Callable[[StageContext], None]
    is_bare: bool = False
    """Whether the log directory contains only meta.properties."""
    ends_program: bool = False
    """Whether the stage stops the program."""
