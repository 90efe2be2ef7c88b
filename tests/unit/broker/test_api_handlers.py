"""Every row of the API table finds its handler on the listeners that serve it."""

from collections.abc import Callable
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from sskafka.broker.api_handlers import forwarded_handlers, serve_broker_apis, serve_controller_apis
from sskafka.model.settings import Settings
from sskafka.servers.kafka.client_quotas import UNLIMITED_MUTATIONS
from sskafka.servers.kafka.registry import HandlerFactories, Registry
from sskafka.wire.apis import API_BY_KEY, ApiKey, Listeners

SETTINGS = SimpleNamespace(controller_listeners=[SimpleNamespace(name="CONTROLLER")], listeners=[])


class NotedFactories(Registry):
    def __init__(self) -> None:
        super().__init__(MagicMock())
        self.listeners = Listeners(0)
        self.families: set[str] = set()

    def serve(self, listeners: Listeners, factories: HandlerFactories) -> None:
        self.listeners, self.families = listeners, set(factories)


def serve_as_broker(registry: Registry) -> None:
    others = {"broker_identity": MagicMock, "broker_load": MagicMock, "segments": MagicMock, "adr": MagicMock}
    serve_broker_apis(registry, MagicMock(), MagicMock(), SETTINGS, MagicMock(), "cluster", MagicMock(), others)  # type: ignore[arg-type]


def serve_as_controller(registry: Registry) -> None:
    serve_controller_apis(registry, MagicMock(), SETTINGS, "cluster")  # type: ignore[arg-type]


@pytest.mark.parametrize("serve", [serve_as_broker, serve_as_controller])
def test_the_families_of_the_table_are_those_that_are_constructed(serve: Callable[[Registry], None]) -> None:
    registry = NotedFactories()
    serve(registry)
    named = {api.handler.split(".")[0] for api in API_BY_KEY.values() if api.listeners & registry.listeners}
    assert named == registry.families


def test_brokers_leave_the_requests_of_nodes_to_controllers_with_listeners_of_their_own() -> None:
    registry = Registry(MagicMock())
    registry.serve(Listeners.BROKER | Listeners.UNLISTED, {})
    registry.remove_controller_apis()
    for key in (ApiKey.VOTE, ApiKey.BROKER_REGISTRATION, ApiKey.ALTER_PARTITION, ApiKey.ENVELOPE):
        assert key not in registry.by_key
    for key in (ApiKey.FETCH, ApiKey.CREATE_TOPICS, ApiKey.BROKER_IDENTITY, ApiKey.WRITE_TXN_MARKERS):
        assert key in registry.by_key


def test_every_forwarded_api_has_a_handler_on_the_node_of_the_controller() -> None:
    settings = Settings.resolve(overrides={"node.id": "1"})
    families = forwarded_handlers(settings, UNLIMITED_MUTATIONS)(MagicMock())
    for api in API_BY_KEY.values():
        if api.forwarded:
            family, method = api.handler.split(".")
            assert callable(getattr(families[family](), method)), api.name
