"""What a script holds: a conversation with one system, which records every exchange.

A script is a function of a session. It runs once against each system, with the same names, and takes ids that it needs
from the answers it got there. The two records are compared exchange by exchange.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from differential.exchange import CLOSED, SILENT, Connection, Dropped, Exchange, error_codes
from differential.messages import API_BY_NAME, build
from differential.systems import Pair, System
from sskafka.model.errors import ErrorCode
from sskafka.wire.codec import UnencodableMessageError, encode

SCRIPT_FAILED = "the script failed"
RETRY_SECONDS_MAX = 10.0
RETRY_PAUSE_SECONDS = 0.02

# Answers that say "ask again": when they come depends on timing alone.
ASK_AGAIN = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
}

FieldsOfVersion: TypeAlias = Callable[[int], dict[str, Any]]


@dataclass
class Session:
    pair: Pair
    system: System
    prefix: str
    """Begins every name that the script gives to a topic, group or transactional id."""
    exchanges: list[Exchange] = field(default_factory=list)
    _connections: dict[str, Connection] = field(default_factory=dict)

    def name(self, word: str) -> str:
        return f"{self.prefix}-{word}"

    def versions(self, api: str) -> list[int]:
        """The versions of an API that both systems serve."""
        return self.pair.common_versions(API_BY_NAME[api].key)

    def ask(
        self, api: str, *, version: int | None = None, note: str = "", retry: bool = True, on: str = "1", **fields: Any
    ) -> Any:
        """Ask, record, return the answer. `on` is a broker's id, with a letter behind it for a further connection."""
        message = build(api, **fields)
        chosen = self.versions(api)[-1] if version is None else version
        return self._record(api, chosen, note, message, self._ask(message, chosen, on, retry))

    def ask_message(self, api: str, version: int, message: Any) -> Any:
        """The same with a message that exists already."""
        return self._record(api, version, "", message, self._ask(message, version, "1", retry=True))

    def ask_each(self, api: str, *, note: str = "", retry: bool = True, on: str = "1", **fields: Any) -> None:
        """Ask in every version that both systems serve and that can carry these fields."""
        self.ask_versions(api, lambda _: fields, note=note, retry=retry, on=on)

    def ask_versions(
        self, api: str, fields_of: FieldsOfVersion, *, note: str = "", retry: bool = True, on: str = "1"
    ) -> list[Any]:
        """The same with fields that depend on the version."""
        answers = []
        for version in self.versions(api):
            message = build(api, **fields_of(version))
            if is_encodable(message, version):
                answers.append(self._record(api, version, note, message, self._ask(message, version, on, retry)))
        return answers

    def look(self, api: str, *, version: int | None = None, on: str = "1", **fields: Any) -> Any:
        """Ask without a record, for what a script needs to know and does not examine."""
        return self._ask(build(api, **fields), self.versions(api)[-1] if version is None else version, on, retry=True)

    def wait_for(self, condition: Callable[[Any], bool], api: str, **fields: Any) -> Any:
        """Look until the answer fulfils a condition."""
        deadline = time.monotonic() + RETRY_SECONDS_MAX
        while True:
            answer = self.look(api, **fields)
            if condition(answer) or time.monotonic() > deadline:
                return answer
            time.sleep(RETRY_PAUSE_SECONDS)

    def begin(self, api: str, *, version: int | None = None, note: str = "", on: str = "1", **fields: Any) -> "Begun":
        """Send a request whose answer may take long; `Begun.finish` takes it and records the exchange."""
        message = build(api, **fields)
        chosen = self.versions(api)[-1] if version is None else version
        self._connection(on).send(message, chosen)
        return Begun(self, api, chosen, note, message, on)

    def send_bytes(self, api_key: int, version: int, body: bytes, note: str, *, answered_as: str | None = None) -> Any:
        """Send any bytes as the body of a request, on a connection of their own."""
        with Connection(*self.system.addresses[1]) as connection:
            connection.send_bytes(api_key, version, body)
            api = answered_as or f"API {api_key}"
            answer = connection.answer_of(api_key, version) if answered_as else connection.frame()
            return self._record(api, version, note, None, answer)

    def send_raw(self, frame: bytes, note: str) -> None:
        with Connection(*self.system.addresses[1]) as connection:
            connection.send_raw(frame)
            answer = connection.frame(seconds_max=2.0)
            self._record("raw bytes", 0, note, None, SILENT if answer is SILENT else answer)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def connection(self, on: str) -> Connection:
        return self._connection(on)

    def record(self, api: str, version: int, note: str, message: Any, answer: Any) -> Any:
        return self._record(api, version, note, message, answer)

    def forget(self, on: str) -> None:
        if (connection := self._connections.pop(on, None)) is not None:
            connection.close()

    def _ask(self, message: Any, version: int, on: str, retry: bool) -> Any:
        deadline = time.monotonic() + RETRY_SECONDS_MAX
        while True:
            answer = self._connection(on).ask(message, version)
            if isinstance(answer, Dropped):
                self.forget(on)
                return answer
            if not retry or ASK_AGAIN.isdisjoint(error_codes(answer)) or time.monotonic() > deadline:
                return answer
            time.sleep(RETRY_PAUSE_SECONDS)

    def _connection(self, on: str) -> Connection:
        if on not in self._connections:
            broker_id = int(on.rstrip("abcdefgh"))
            self._connections[on] = Connection(*self.system.addresses[broker_id])
        return self._connections[on]

    def _record(self, api: str, version: int, note: str, message: Any, answer: Any) -> Any:
        self.exchanges.append(Exchange(api, version, note, message, answer))
        return answer


@dataclass(frozen=True, slots=True)
class Begun:
    session: Session
    api: str
    version: int
    note: str
    message: Any
    on: str

    def finish(self) -> Any:
        answer = self.session.connection(self.on).answer(self.message, self.version)
        if answer in (CLOSED, SILENT):
            self.session.forget(self.on)
        return self.session.record(self.api, self.version, self.note, self.message, answer)


def is_encodable(message: Any, version: int) -> bool:
    try:
        encode(message, version)
    except UnencodableMessageError:
        return False
    return True


def run_script(pair: Pair, script: Callable[[Session], None], prefix: str) -> tuple[list[Exchange], list[Exchange]]:
    """Run a script against both systems; the exchanges with Apache Kafka first."""
    return pair.on_both(lambda system: list(_exchanges(Session(pair, system, prefix), script)))


def _exchanges(session: Session, script: Callable[[Session], None]) -> Iterator[Exchange]:
    """A script that fails on an unexpected answer has that failure as its last exchange."""
    try:
        script(session)
    except Exception as error:  # the other system may have answered as the script expects: that is a difference
        session.exchanges.append(Exchange(SCRIPT_FAILED, 0, "", None, Dropped(f"{type(error).__name__}: {error}")))
    finally:
        session.close()
    yield from session.exchanges
