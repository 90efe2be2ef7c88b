"""What the producers and consumers that users make have in common: a cluster of their own, and its metadata.

They take bootstrap servers and client properties, `linger_ms=5` or `**{"linger.ms": 5}`, and own what they open.
"""

from collections.abc import Mapping
from typing import Self, TypeAlias

from sskafka.client.cluster import Cluster
from sskafka.client.config import ConnectionConfig, configured, properties_from
from sskafka.client.metadata import ClusterView

DEFAULT_BOOTSTRAP = "localhost:9092"

Property: TypeAlias = str | int | bool
Text: TypeAlias = bytes | str
"""Keys and values; a text is sent in UTF-8."""


def as_bytes(text: Text | None) -> bytes | None:
    return text.encode() if isinstance(text, str) else text


class AsyncClient:
    """`bootstrap_servers` may be None for a client that is given its metadata by `set_cluster_metadata`."""

    def __init__(self, bootstrap_servers: str | None, properties: Mapping[str, str]) -> None:
        self._cluster = Cluster(bootstrap_servers or (), configured(ConnectionConfig, properties))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._cluster.close()

    async def fetch_cluster_metadata(self) -> ClusterView:
        """Asks any broker: who is there, which topics, who leads their partitions and who is in sync."""
        return await self._cluster.retrying(lambda: self._cluster.refresh(None))

    def set_cluster_metadata(self, metadata: ClusterView) -> None:
        """What another client has fetched; it is used until it is too old or turns out to be wrong."""
        self._cluster.adopt(metadata)

    fetchClusterMetadata = fetch_cluster_metadata  # noqa: N815
    setClusterMetadata = set_cluster_metadata  # noqa: N815


def stated(defaults: Mapping[str, Property], options: Mapping[str, Property]) -> dict[str, str]:
    """Properties of a client: its own defaults, and what its user says."""
    return {**properties_from(defaults), **properties_from(options)}
