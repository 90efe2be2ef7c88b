"""Who may lead, and what a topic asks of its in-sync replicas: the cluster as one decision sees it.

A decision about a broker that comes or goes is made before the image shows it, so the rules are told: a broker that
is `coming` may lead although the image has it fenced, one that is `going` may not although the image has it active.
"""

from collections.abc import Collection

from sskafka.metadata.broker_registration import BrokerRegistration
from sskafka.metadata.effective_settings import effective_settings
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.partition_image import PartitionImage
from sskafka.model.settings import Settings


class ElectionRules:
    def __init__(
        self,
        image: ClusterImage,
        settings: Settings,
        *,
        coming: BrokerRegistration | None = None,
        going: Collection[int] = (),
    ) -> None:
        self.image = image
        self.keeps_eligible_leaders = image.uses_eligible_leader_replicas
        self._settings = effective_settings(settings, image)
        self._coming = coming
        self._going = going
        self._min_insync: dict[str, int] = {}

    def broker_up(self, broker_id: int) -> BrokerRegistration | None:
        if broker_id in self._going:
            return None
        if self._coming is not None and broker_id == self._coming.id:
            return self._coming
        broker = self.image.brokers.get(broker_id)
        return broker if broker is not None and broker.is_active else None

    def can_lead(self, state: PartitionImage, broker_id: int) -> bool:
        """Whether the broker is up and has the directory in which its replica lies."""
        broker = self.broker_up(broker_id)
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
