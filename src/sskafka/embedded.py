"""A broker inside this process, for tests, notebooks and programs that do not want a second process.

    with sskafka.Broker() as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})

The broker runs on its own thread and event loop, on a free port, in a temporary directory that is deleted afterwards;
`directory=` keeps the data instead.
"""

import asyncio
import tempfile
import threading
from collections.abc import Callable, Coroutine, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self, TypeVar

from sskafka.broker import Broker
from sskafka.model.settings import Settings
from sskafka.runtime.event_loop import new_event_loop

T = TypeVar("T")

START_TIMEOUT_S = 30


class EmbeddedBroker:
    """A broker on its own thread. `settings` have Kafka's names, e.g. ``{"num.partitions": 3}``."""

    def __init__(
        self, settings: Mapping[str, object] | None = None, *, directory: str | None = None, port: int = 0
    ) -> None:
        self._overrides = {key: _as_text(value) for key, value in (settings or {}).items()}
        self._directory = directory
        self._port = port
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
        listener = f"PLAINTEXT://127.0.0.1:{self._port}"
        return {"node.id": "1", "listeners": listener, "log.dirs": directory, **self._overrides}

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


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
