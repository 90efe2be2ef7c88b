"""Which brokers may lead, and what a topic requires of its ISR, from the point of view of one decision.

A decision about a broker that starts or stops is made before the image shows the change, so it is passed in: a
`starting` broker may lead although it is fenced in the image, and a `stopping` broker may not although it is active.
"""

from collections.abc import Collection

from sskafka.metadata.brokers.registration import BrokerRegistration
from sskafka.metadata.effective_settings import effective_settings
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.partitions.image import PartitionImage
from sskafka.model.settings import Settings


class ElectionRules:
    def __init__(
        self,
        image: ClusterImage,
        settings: Settings,
        *,
        starting: BrokerRegistration | None = None,
        stopping: Collection[int] = (),
    ) -> None:
        self.image = image
        self.keeps_eligible_leaders = image.uses_eligible_leader_replicas
        self._settings = effective_settings(settings, image)
        self._starting = starting
        self._stopping = stopping
        self._min_insync: dict[str, int] = {}

    def live_broker(self, broker_id: int) -> BrokerRegistration | None:
        if broker_id in self._stopping:
            return None
        if self._starting is not None and broker_id == self._starting.id:
            return self._starting
        broker = self.image.brokers.get(broker_id)
        return broker if broker is not None and broker.is_active else None

    def can_lead(self, state: PartitionImage, broker_id: int) -> bool:
        """Return whether the broker is up and has the directory of its replica."""
        broker = self.live_broker(broker_id)
        return broker is not None and broker.has_directory(state.directory_of(broker_id))

    def min_insync(self, topic_name: str) -> int:
        if topic_name not in self._min_insync:
            own = self.image.topic_configs(topic_name).get("min.insync.replicas")
            self._min_insync[topic_name] = int(own) if own is not None else self._settings["min.insync.replicas"]
        return self._min_insync[topic_name]

    def allows_unclean(self, topic_name: str) -> bool:
        own = self.image.topic_configs(topic_name).get("unclean.leader.election.enable")
        allowed: bool = self._settings["unclean.leader.election.enable"] if own is None else own.lower() == "true"
        return allowed
