"""The cluster as clients of one listener see it: brokers have the addresses that they advertise for that listener."""

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from sskafka.metadata.image import ClusterImage
from sskafka.metadata.partitions.image import PartitionImage
from sskafka.wire.leaders import NodeEndpoint


class BrokerAddress(NamedTuple):
    broker_id: int
    host: str
    port: int
    rack: str | None
    fenced: bool


class ListenerBrokers(NamedTuple):
    """The brokers that have a certain listener."""

    registered: frozenset[int]
    live: frozenset[int]
    """The registered brokers that are not fenced."""


class ClusterView:
    def __init__(self, cluster_id: str, image: Callable[[], ClusterImage], controller_id: Callable[[], int]) -> None:
        self.cluster_id = cluster_id
        self._image = image
        self._controller_id = controller_id
        self._counted_image: ClusterImage | None = None
        self._brokers_by_listener: dict[str, ListenerBrokers] = {}  # of that image

    @property
    def image(self) -> ClusterImage:
        return self._image()

    @property
    def controller_id(self) -> int:
        return self._controller_id()

    def brokers(self, listener_name: str, include_fenced: bool = False) -> Iterator[BrokerAddress]:
        for broker in self.image.brokers.values():
            endpoint = broker.endpoint(listener_name)
            if endpoint is not None and (include_fenced or not broker.fenced):
                yield BrokerAddress(broker.id, endpoint.host, endpoint.port, broker.rack, broker.fenced)

    def endpoints(self, broker_ids: Collection[int], listener_name: str) -> list[NodeEndpoint]:
        """Return the endpoints of leaders, for responses that redirect a client to another broker."""
        return [
            NodeEndpoint(broker.broker_id, broker.host, broker.port, broker.rack)
            for broker in self.brokers(listener_name)
            if broker.broker_id in broker_ids
        ]

    def has_listener(self, broker_id: int, listener_name: str) -> bool:
        return broker_id in self._on_listener(listener_name).registered

    def offline_replicas(self, partition: PartitionImage, listener_name: str) -> list[int]:
        """Return the replicas on brokers that are fenced, unregistered or without that listener."""
        live = self._on_listener(listener_name).live
        return [replica for replica in partition.replicas if replica not in live]

    def _on_listener(self, listener_name: str) -> ListenerBrokers:
        """Look at the brokers once per image and not once per replica: a published image never changes."""
        image = self.image
        if image is not self._counted_image:
            self._counted_image, self._brokers_by_listener = image, {}
        known = self._brokers_by_listener.get(listener_name)
        if known is None:
            brokers = [broker for broker in image.brokers.values() if broker.endpoint(listener_name) is not None]
            known = ListenerBrokers(
                frozenset(broker.id for broker in brokers),
                frozenset(broker.id for broker in brokers if not broker.fenced),
            )
            self._brokers_by_listener[listener_name] = known
        return known
