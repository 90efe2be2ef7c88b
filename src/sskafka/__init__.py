"""SSKafka: Kafka for Python people.

``Broker`` runs a broker inside this process; it is imported on first use, so that ``import sskafka`` stays cheap.
"""

from typing import TYPE_CHECKING, Any

from sskafka.model.version import __version__

if TYPE_CHECKING:
    from sskafka.embedded import EmbeddedBroker as Broker


__all__ = ["Broker", "__version__"]


def __getattr__(name: str) -> Any:
    if name == "Broker":
        from sskafka.embedded import EmbeddedBroker  # noqa: PLC0415

        return EmbeddedBroker
    raise AttributeError(f"module 'sskafka' has no attribute {name!r}")
