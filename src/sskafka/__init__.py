"""SSKafka: Kafka for Python people.

``Broker`` runs a broker inside this process; ``Producer`` and ``Consumer`` write to and read from any Kafka cluster,
``AsyncProducer`` and ``AsyncConsumer`` do so on an event loop. Each is imported on first use, so that
``import sskafka`` stays cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import sskafka.compiled  # noqa: F401 - first of all: it decides whether compiled modules are used
from sskafka.model.version import __version__

if TYPE_CHECKING:
    from sskafka.client.async_clients import AsyncConsumer, AsyncProducer
    from sskafka.client.sync_clients import Consumer, Producer
    from sskafka.embedded import EmbeddedBroker as Broker
    from sskafka.model.errors import KafkaError


__all__ = ["AsyncConsumer", "AsyncProducer", "Broker", "Consumer", "KafkaError", "Producer", "__version__"]

_HOMES = {
    "AsyncConsumer": "sskafka.client.async_clients:AsyncConsumer",
    "AsyncProducer": "sskafka.client.async_clients:AsyncProducer",
    "Broker": "sskafka.embedded:EmbeddedBroker",
    "Consumer": "sskafka.client.sync_clients:Consumer",
    "KafkaError": "sskafka.model.errors:KafkaError",
    "Producer": "sskafka.client.sync_clients:Producer",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sskafka' has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    return getattr(import_module(module), attribute)
