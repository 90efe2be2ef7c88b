"""TLS options that change while a broker runs, for its HTTP process.

{"known": number} -> {"number", "options"}, once the number is another one; 0 is never the number of options
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from sskafka.runtime.tls.contexts import TlsOptions


class ChangingTls:
    def __init__(self, options: TlsOptions) -> None:
        self._options = options
        self._number = 1
        self._changed = asyncio.Event()

    def change_to(self, options: TlsOptions) -> None:
        if options != self._options:
            self._options, self._number = options, self._number + 1
            self._changed.set()

    async def newer(self, details: Mapping[str, Any]) -> dict[str, Any]:
        while details["known"] == self._number:
            self._changed.clear()
            await self._changed.wait()
        return {"number": self._number, "options": self._options.to_json()}
