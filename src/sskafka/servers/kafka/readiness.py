"""The APIs that the listeners of a broker serve before and after the broker has joined its cluster.

Before that, the broker serves only the APIs that other nodes need so that it can join, and closes the connections of
clients. They connect again, as they do while a port is not open yet.
"""

from sskafka.servers.kafka.registry import Registry, ServedApi
from sskafka.servers.kafka.request import Request, Response
from sskafka.wire.apis import Listeners


class ServedApis:
    """The APIs of a registry that listeners serve at the moment."""

    def __init__(self) -> None:
        self.by_key: dict[int, ServedApi] = {}

    def open_to_nodes(self, registry: Registry) -> None:
        for key, served in registry.by_key.items():
            is_served = served.api.listeners & Listeners.STARTING
            self.by_key[key] = served if is_served else ServedApi(served.api, _refuse_client, served.counters)

    def open_to_all(self, registry: Registry) -> None:
        self.by_key.update(registry.by_key)


def _refuse_client(request: Request) -> Response | None:
    request.connection.close()
    return None
