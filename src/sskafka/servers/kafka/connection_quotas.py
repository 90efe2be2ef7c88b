"""Limits on connections: in total, for each listener, for each client address, and on new connections per second,
of which an address may have a quota of its own (connection_creation_rate).

The listeners of one event loop share a `ConnectionQuotas`. Its limits may change while the node runs. A connection
above a limit is refused. A connection above the rate is accepted, but not read from until it is due; Apache Kafka
delays its acceptance instead.
"""

import logging
import socket
from collections import Counter
from collections.abc import Callable, Mapping

from sskafka.metadata.acls.binding import normal_address
from sskafka.model.listeners import parse_connection_counts
from sskafka.model.settings import Settings
from sskafka.model.values import value

log = logging.getLogger(__name__)

ADDRESSES_KEPT_MAX = 10_000


@value
class ListenerLimits:
    connections_max: int
    creations_per_second: int


class ConnectionQuotas:
    def __init__(self, settings: Settings) -> None:
        self._count = 0
        self._by_listener: Counter[str] = Counter()
        self._by_address: Counter[str] = Counter()
        self._rates: dict[str, CreationRate] = {}
        self._rates_by_address: dict[str, CreationRate] = {}
        self.address_rates: Callable[[str], float | None] | None = None
        """The quota connection_creation_rate of an address; None while no address has one."""
        self.apply(settings)

    def apply(self, settings: Settings) -> None:
        """Apply limits that were changed at run time. Open connections stay open."""
        self._settings = settings
        self._connections_max = settings["max.connections"]
        self._per_address_max = settings["max.connections.per.ip"]
        self._overrides = resolved_counts(settings["max.connections.per.ip.overrides"])
        self._limits: dict[str, ListenerLimits] = {}

    def refusal(self, listener: str, address: str) -> str | None:
        """Return why a connection is refused, or None if it is admitted."""
        if self._count >= self._connections_max:
            return f"max.connections of {self._connections_max} is reached"
        limit = self._limits_of(listener).connections_max
        if self._by_listener[listener] >= limit:
            return f"max.connections of {limit} is reached on the listener {listener}"
        allowed = self._overrides.get(address, self._per_address_max)
        if self._by_address[address] >= allowed:
            return f"max.connections.per.ip of {allowed} is reached"
        return None

    def admit(self, listener: str, address: str, now_s: float) -> float:
        """Count a connection. Return the seconds to wait before reading from it."""
        self._count += 1
        self._by_listener[listener] += 1
        self._by_address[address] += 1
        of_all = self._rate("").wait_s(self._settings["max.connection.creation.rate"], now_s)
        of_listener = self._rate(listener).wait_s(self._limits_of(listener).creations_per_second, now_s)
        return max(of_all, of_listener, self._wait_of_address_s(address, now_s))

    def _wait_of_address_s(self, address: str, now_s: float) -> float:
        per_second = self.address_rates(normal_address(address)) if self.address_rates is not None else None
        if per_second is None:
            return 0.0
        if len(self._rates_by_address) >= ADDRESSES_KEPT_MAX:
            self._rates_by_address.clear()
        return self._rates_by_address.setdefault(address, CreationRate()).wait_s(per_second, now_s)

    def forget(self, listener: str, address: str) -> None:
        self._count -= 1
        for counts, key in ((self._by_listener, listener), (self._by_address, address)):
            counts[key] -= 1
            if not counts[key]:
                del counts[key]

    def _limits_of(self, listener: str) -> ListenerLimits:
        limits = self._limits.get(listener)
        if limits is None:
            own = self._settings.for_listener(listener)
            limits = ListenerLimits(own["max.connections"], own["max.connection.creation.rate"])
            self._limits[listener] = limits
        return limits

    def _rate(self, listener: str) -> "CreationRate":
        return self._rates.setdefault(listener, CreationRate())


class CreationRate:
    """Limits the rate of connections: a burst of one second's connections is served at once, further ones wait."""

    def __init__(self) -> None:
        self._tokens = 0.0
        self._filled_s: float | None = None

    def wait_s(self, per_second: float, now_s: float) -> float:
        """Count a connection. Return the seconds until it is due."""
        if self._filled_s is None:
            self._tokens = float(per_second)
        else:
            self._tokens = min(float(per_second), self._tokens + (now_s - self._filled_s) * per_second)
        self._filled_s = now_s
        self._tokens -= 1
        return max(0.0, -self._tokens / per_second) if per_second > 0 else 0.0


def resolved_counts(text: str) -> Mapping[str, int]:
    """Return the limits by address. A limit for a host name applies to each address of the host."""
    counts: dict[str, int] = {}
    for host, count in parse_connection_counts(text).items():
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError as error:
            log.warning("max.connections.per.ip.overrides: %s cannot be resolved: %s", host, error)
            continue
        counts |= {str(address[0]): count for *_, address in found}
    return counts
