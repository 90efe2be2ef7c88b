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


class ClusterView:
    def __init__(self, cluster_id: str, image: Callable[[], ClusterImage], controller_id: Callable[[], int]) -> None:
        self.cluster_id = cluster_id
        self._image = image
        self._controller_id = controller_id

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
        broker = self.image.brokers.get(broker_id)
        return broker is not None and broker.endpoint(listener_name) is not None

    def offline_replicas(self, partition: PartitionImage, listener_name: str) -> list[int]:
        """Return the replicas on brokers that are fenced, unregistered or without that listener."""
        return [replica for replica in partition.replicas if not self._is_live(replica, listener_name)]

    def _is_live(self, broker_id: int, listener_name: str) -> bool:
        broker = self.image.brokers.get(broker_id)
        return broker is not None and not broker.fenced and broker.endpoint(listener_name) is not None
