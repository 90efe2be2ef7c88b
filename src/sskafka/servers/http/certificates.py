"""The TLS context of the HTTP server, and its changes: other files, or other settings of the broker."""

import asyncio
import logging
import ssl
from collections.abc import Coroutine
from typing import Any, Self

from sskafka.runtime.tls.contexts import ReloadingContext, TlsOptions, server_context
from sskafka.runtime.tls.stores import TlsConfigError
from sskafka.servers.local.link import BrokerGoneError, LocalLink

log = logging.getLogger(__name__)

WATCH_INTERVAL_S = 2.0


class HttpCertificates:
    def __init__(self, link: LocalLink, source: ReloadingContext, number: int) -> None:
        self._link = link
        self._source = source
        self._number = number

    @classmethod
    async def read(cls, link: LocalLink) -> Self:
        number, options = await _options(link, 0)
        return cls(link, await asyncio.to_thread(ReloadingContext, options, server_context), number)

    def context(self) -> ssl.SSLContext:
        """Return the context of new connections."""
        return self._source.context

    def watches(self) -> tuple[Coroutine[Any, Any, None], ...]:
        """Return what has to run as long as the server."""
        return self._watch_files(), self._watch_settings()

    async def _watch_files(self) -> None:
        while True:
            await asyncio.sleep(WATCH_INTERVAL_S)
            if self._source.is_stale:
                await asyncio.to_thread(self._source.reload)

    async def _watch_settings(self) -> None:
        try:
            while True:
                self._number, options = await _options(self._link, self._number)
                await asyncio.to_thread(self._change, options)
        except BrokerGoneError:
            return

    def _change(self, options: TlsOptions) -> None:
        try:
            self._source.change_to(options)
        except TlsConfigError as error:
            log.error("the HTTP server keeps its certificates: %s", error)


async def _options(link: LocalLink, known: int) -> tuple[int, TlsOptions]:
    answer = await link.ask("tls_options", known=known)
    return answer["number"], TlsOptions.from_json(answer["options"])
