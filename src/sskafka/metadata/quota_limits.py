"""Which client quota applies to a user and a client id: Apache Kafka's order of precedence.

    user and client id                 for this user and this client id
    user, every client id              for this user and each of its client ids
    user                               for this user, whatever its client ids
    every user, client id              for each user and this client id
    every user and client id           for each user and each of its client ids
    every user                         for each user
    client id                          for this client id, whatever its users
    every client id                    for each client id

The first of these that has a value for the key applies. All clients with the same scope share a quota: the scope has
the user, if the entity of the quota names users, and the client id, if it names client ids.
"""

from collections.abc import Mapping
from typing import NamedTuple

from sskafka.metadata.image import QuotaEntity

PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE = "producer_byte_rate", "consumer_byte_rate"
REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE = "request_percentage", "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"
USER, CLIENT_ID, IP = "user", "client-id", "ip"

Scope = tuple[str | None, str | None]
"""User and client id; None: all of them together."""


class QuotaLimit(NamedTuple):
    rate: float
    scope: Scope


class QuotaLimits:
    def __init__(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """The mapping must not change later."""
        self._quotas = quotas
        self._keys = {key for values in quotas.values() for key in values}
        self._found: dict[tuple[str, str, str], QuotaLimit | None] = {}

    def has(self, key: str) -> bool:
        """Return whether anybody has a quota for the key."""
        return key in self._keys

    def of_client(self, key: str, user: str, client_id: str) -> QuotaLimit | None:
        if key not in self._keys:
            return None
        requested = (key, user, client_id)
        if requested not in self._found:
            if len(self._found) >= _FOUND_MAX:
                self._found.clear()
            self._found[requested] = self._look_up(key, user, client_id)
        return self._found[requested]

    def of_address(self, address: str) -> float | None:
        """Return the connections a second that may come from an address."""
        for name in (address, None):
            rate = self._quotas.get(((IP, name),), {}).get(CONNECTION_CREATION_RATE)
            if rate is not None:
                return rate
        return None

    def _look_up(self, key: str, user: str, client_id: str) -> QuotaLimit | None:
        both: Scope = (user, client_id)
        of_user: Scope = (user, None)
        of_client: Scope = (None, client_id)
        candidates: tuple[tuple[QuotaEntity, Scope], ...] = (
            (((CLIENT_ID, client_id), (USER, user)), both),
            (((CLIENT_ID, None), (USER, user)), both),
            (((USER, user),), of_user),
            (((CLIENT_ID, client_id), (USER, None)), both),
            (((CLIENT_ID, None), (USER, None)), both),
            (((USER, None),), of_user),
            (((CLIENT_ID, client_id),), of_client),
            (((CLIENT_ID, None),), of_client),
        )
        for entity, scope in candidates:
            rate = self._quotas.get(entity, {}).get(key)
            if rate is not None:
                return QuotaLimit(rate, scope)
        return None


_FOUND_MAX = 10_000
