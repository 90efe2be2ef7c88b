"""A broker inside this process, for tests, notebooks and programs that do not want a second process.

    with sskafka.Broker() as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})

    with sskafka.Broker() as broker:
        broker.produce("orders", "3 apples")
        assert [record.value for record in broker.consume("orders")] == [b"3 apples"]

    with sskafka.Broker(tls=True, sasl={"alice": "secret"}, acls=[]) as broker:
        producer = confluent_kafka.Producer(broker.login("alice").librdkafka())

The broker runs on its own thread and event loop, on a free port, in a temporary directory that is deleted afterwards;
`directory=` keeps the data instead. Consumer groups start at once: `FAST_GROUPS` are the defaults of embedded brokers.
"""

import asyncio
import tempfile
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from sskafka.broker import Broker
from sskafka.client.shortcuts import ClientShortcuts
from sskafka.model.settings import Settings
from sskafka.runtime.event_loop import new_event_loop

if TYPE_CHECKING:
    from sskafka.client.client_login import ClientLogin

T = TypeVar("T")

START_TIMEOUT_S = 30
FAST_GROUPS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
"""Groups wait for no further members, and the first group or transaction creates one partition instead of 50."""


class EmbeddedBroker(ClientShortcuts):
    """A broker on its own thread. `settings` have Kafka's names, e.g. ``{"num.partitions": 3}``.

    `tls`: encrypted connections, with a certificate for localhost of an authority that exists as long as the broker.
    `sasl`: users with their passwords, who log in with PLAIN or SCRAM. `acls`: rules with the options of kafka-acls as
    keys, ``{"allow_principal": "alice", "operation": "Read", "topic": "orders"}``; everything else is denied. None:
    everything is allowed. Super users are configured by the setting `super.users`.
    """

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        *,
        directory: str | None = None,
        port: int = 0,
        tls: bool = False,
        sasl: Mapping[str, str] | None = None,
        acls: Sequence[Mapping[str, object]] | None = None,
    ) -> None:
        self._overrides = {key: _as_text(value) for key, value in (settings or {}).items()}
        self._directory = directory
        self._port = port
        self._tls = tls
        self._users = dict(sasl) if sasl else None
        self._acls = acls
        self._certificates: Path | None = None
        self._cleanup = ExitStack()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._broker: Broker | None = None

    @property
    def bootstrap_servers(self) -> str:
        """Address for clients: ``host:port``."""
        return self._running().bootstrap_servers

    @property
    def http_address(self) -> str | None:
        """host:port of the HTTP server, if the setting ``http.listener`` enables it."""
        return self._running().http_address

    @property
    def adr_address(self) -> str | None:
        """host:port of the ADR-0011 server, if the setting ``adr.listener`` enables it."""
        return self._running().adr_address

    def login(self, user: str | None = None, mechanism: str = "SCRAM-SHA-512") -> "ClientLogin":
        """Return the properties of clients for a user: ``.kafka()``, ``.librdkafka()``, ``.aiokafka()`` and
        ``.kafka_python()``. The first user if none is named."""
        from sskafka.client.client_login import ClientLogin  # noqa: PLC0415  only secure brokers need it

        users = self._users or {}
        if user is None:
            user = next(iter(users), "")
        elif user not in users:
            raise ValueError(f"there is no user {user!r}")
        ca = str(self._certificates / "ca.pem") if self._certificates is not None else ""
        protocol = _protocol(self._tls, self._users)
        return ClientLogin(self.bootstrap_servers, protocol, ca, mechanism if users else "", user, users.get(user, ""))

    def client_properties(self) -> dict[str, str]:
        """Return the properties of the first user's clients, under Kafka's names."""
        return self.login().kafka()

    def start(self) -> Self:
        """Start the broker and return when it is ready; on failure, clean up and raise the error."""
        try:
            self._start()
        except BaseException:
            self._broker = None
            self._cleanup.close()
            raise
        return self

    def _start(self) -> None:
        directory = self._directory
        if directory is None:
            directory = self._cleanup.enter_context(tempfile.TemporaryDirectory(prefix="sskafka-"))
        self._broker = Broker(Settings.resolve(file={}, environment={}, overrides=self._settings_for(directory)))
        self._loop = new_event_loop()
        thread = threading.Thread(target=self._loop.run_forever, name="sskafka-broker", daemon=True)
        thread.start()
        self._cleanup.callback(self._end_thread, thread)
        self._call(self._broker.start)
        try:
            self._call(self._add_users_and_acls)
            self._call(self._broker.servers_open)
        except BaseException:
            self._call(self._broker.stop)
            raise

    def stop(self) -> None:
        """Flush and close the logs, and end the thread; a second call does nothing."""
        if self._broker is not None:
            try:
                self._call(self._broker.stop)
            finally:
                self._broker = None
                self._cleanup.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _settings_for(self, directory: str) -> dict[str, str]:
        listener = f"{_protocol(self._tls, self._users)}://127.0.0.1:{self._port}"
        own = {"node.id": "1", "listeners": listener, "log.dirs": directory}
        return {**FAST_GROUPS, **own, **self._security_settings(), **self._overrides}

    def _security_settings(self) -> dict[str, str]:
        if not self._tls and self._users is None and self._acls is None:
            return {}
        from sskafka.broker import local_security as security  # noqa: PLC0415  only secure brokers need it

        settings: dict[str, str] = {}
        if self._tls:
            directory = self._cleanup.enter_context(tempfile.TemporaryDirectory(prefix="sskafka-certificates-"))
            self._certificates = Path(directory)
            settings |= security.tls_settings(security.make_certificates(self._certificates, "broker"))
        protocol = _protocol(self._tls, self._users)
        if self._users is not None:
            settings |= security.sasl_settings(protocol, self._users, security.new_password())
        settings |= security.http_settings(protocol)
        if self._acls is not None:
            settings |= security.authorizer_settings()
        return settings

    async def _add_users_and_acls(self) -> None:
        if not self._users and not self._acls:
            return
        from sskafka.broker import local_security as security  # noqa: PLC0415  only secure brokers need it

        assert self._broker is not None
        await security.add_users(self._broker, self._users or {})
        bindings = [binding for rule in self._acls or () for binding in security.acl_bindings(rule)]
        await security.add_acls(self._broker, bindings)

    def _running(self) -> Broker:
        if self._broker is None:
            raise RuntimeError("the broker is not running: use `with sskafka.Broker() as broker:` or call start()")
        return self._broker

    def _call(self, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(function(), self._loop).result(START_TIMEOUT_S)

    def _end_thread(self, thread: threading.Thread) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._loop.stop)
        thread.join()
        self._loop.close()


def _protocol(tls: bool, users: Mapping[str, str] | None) -> str:
    return f"SASL_{'SSL' if tls else 'PLAINTEXT'}" if users is not None else "SSL" if tls else "PLAINTEXT"


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
