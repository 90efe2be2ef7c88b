"""Common base of the public producers and consumers: each owns a `Cluster`, with its connections and metadata.

The clients take bootstrap servers and client properties, as `linger_ms=5` or `**{"linger.ms": 5}`.
"""

from collections.abc import Mapping
from typing import Self, TypeAlias

from sskafka.client.cluster import Cluster
from sskafka.client.config import ConnectionConfig, configured, properties_from
from sskafka.client.metadata import MetadataSnapshot

DEFAULT_BOOTSTRAP = "localhost:9092"

Property: TypeAlias = str | int | bool
Text: TypeAlias = bytes | str
"""Keys and values; `str` is encoded as UTF-8."""


def as_bytes(text: Text | None) -> bytes | None:
    return text.encode() if isinstance(text, str) else text


class AsyncClient:
    """`bootstrap_servers` may be None if the client receives its metadata through `set_cluster_metadata`."""

    def __init__(self, bootstrap_servers: str | None, properties: Mapping[str, str]) -> None:
        self._cluster = Cluster(bootstrap_servers or (), configured(ConnectionConfig, properties))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._cluster.close()

    async def fetch_cluster_metadata(self) -> MetadataSnapshot:
        """Fetch the brokers, topics, partition leaders and in-sync replicas from any broker."""
        return await self._cluster.retrying(lambda: self._cluster.refresh(None))

    def set_cluster_metadata(self, metadata: MetadataSnapshot) -> None:
        """Use metadata that another client fetched, until it expires or a response shows that it is stale."""
        self._cluster.adopt(metadata)

    fetchClusterMetadata = fetch_cluster_metadata  # noqa: N815
    setClusterMetadata = set_cluster_metadata  # noqa: N815


def client_properties(defaults: Mapping[str, Property], options: Mapping[str, Property]) -> dict[str, str]:
    """Return the defaults of a client, overridden by the options of its user, as properties."""
    return {**properties_from(defaults), **properties_from(options)}
