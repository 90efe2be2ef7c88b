"""Options that change while a broker runs, for its HTTP process: keys and certificates, and its login to the broker.

{"known": number} -> {"number", "options"}, once the number is another one; 0 is never the number of options
"""

import asyncio
from collections.abc import Mapping
from typing import Any


class ChangingOptions:
    def __init__(self, options: Mapping[str, Any]) -> None:
        """The options, with their secrets, are sent to the HTTP process as JSON."""
        self._options = options
        self._number = 1
        self._changed = asyncio.Event()

    def change_to(self, options: Mapping[str, Any]) -> None:
        if options != self._options:
            self._options, self._number = options, self._number + 1
            self._changed.set()

    async def newer(self, details: Mapping[str, Any]) -> dict[str, Any]:
        while details["known"] == self._number:
            self._changed.clear()
            await self._changed.wait()
        return {"number": self._number, "options": dict(self._options)}
