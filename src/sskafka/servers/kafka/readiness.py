"""What a broker answers before it is part of its cluster: other nodes, so that it can become one, and nobody else.

Clients that come too early find their connection closed, as they would find a port not open yet, and come again.
"""

from sskafka.servers.kafka.handlers.controller_apis import BROKER_APIS
from sskafka.servers.kafka.handlers.quorum import QUORUM_APIS
from sskafka.servers.kafka.registry import Api, Registry
from sskafka.servers.kafka.request import Request, Response
from sskafka.wire.apis import ApiKey

FOR_OTHER_NODES = frozenset(
    {*QUORUM_APIS, *BROKER_APIS, ApiKey.ENVELOPE, ApiKey.FETCH, ApiKey.API_VERSIONS, ApiKey.BROKER_IDENTITY}
)


class ServedApis:
    """The APIs of a registry as listeners see them."""

    def __init__(self) -> None:
        self.by_key: dict[int, Api] = {}

    def open_to_nodes(self, registry: Registry) -> None:
        for key, api in registry.by_key.items():
            self.by_key[key] = api if key in FOR_OTHER_NODES else api._replace(handle=_turn_away)

    def open_to_all(self, registry: Registry) -> None:
        self.by_key.update(registry.by_key)


def _turn_away(request: Request) -> Response | None:
    request.connection.close()
    return None
