"""Health and counters for streams of events, asked for once for all streams of a client.

The time to compute the health of a cluster grows with its topics. Therefore a result is reused for ten times the CPU
time that it took.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from time import monotonic, thread_time

from sskafka.servers.http.caller import HttpCaller

REST_FACTOR = 10
"""The answer is used for at least this multiple of the CPU time that the look took."""
CLIENTS_MAX = 100


class _Look:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.text = ""
        self.valid_until_s = 0.0


class SharedAnswers:
    def __init__(self) -> None:
        self._looks: OrderedDict[HttpCaller | None, _Look] = OrderedDict()

    async def recent(self, client: HttpCaller | None, age_s_max: float, look: Callable[[], Awaitable[str]]) -> str:
        """Return what `look` returned for this client at most `age_s_max` ago, or longer ago if looking is costly.

        Raises what `look` raises; the next caller looks again."""
        kept = self._looks.setdefault(client, _Look())
        self._looks.move_to_end(client)
        while len(self._looks) > CLIENTS_MAX:
            self._looks.popitem(last=False)
        async with kept.lock:
            if monotonic() >= kept.valid_until_s:
                began_s, began_cpu_s = monotonic(), thread_time()
                kept.text = await look()
                rest_s = REST_FACTOR * (thread_time() - began_cpu_s)
                kept.valid_until_s = max(began_s + age_s_max, monotonic() + rest_s)
            return kept.text
