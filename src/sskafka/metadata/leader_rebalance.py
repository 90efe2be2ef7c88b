"""Preferred leader rebalancing: when brokers stop and return, leadership moves away from preferred replicas.

Runs every leader.imbalance.check.interval.seconds if auto.leader.rebalance.enable is true. As in Kafka's KRaft
controller, every partition whose preferred replica can lead is moved; there is no minimum imbalance.
"""

from collections.abc import Iterator

from sskafka.metadata.controller_result import ControllerResult
from sskafka.metadata.elect_leaders import preferred_leader_change
from sskafka.metadata.election_rules import ElectionRules
from sskafka.metadata.image import ClusterImage, TopicImage
from sskafka.metadata.records import MetadataRecord
from sskafka.model.errors import KafkaError
from sskafka.model.settings import Settings

ELECTIONS_MAX = 1000
"""Maximum per decision; after a large failure a cluster is rebalanced in several steps."""


def plan_leader_rebalance(
    image: ClusterImage, settings: Settings, *, elections_max: int = ELECTIONS_MAX
) -> ControllerResult[bool]:
    """Return the elections; the response is whether there may be more to do at once."""
    if not settings["auto.leader.rebalance.enable"]:
        return ControllerResult((), False)
    rules = ElectionRules(image, settings)
    records: list[MetadataRecord] = []
    for topic, number in _not_led_by_preferred(image):
        if len(records) == elections_max:
            return ControllerResult(records, True)
        try:
            records.append(preferred_leader_change(rules, topic, number))
        except KafkaError:
            continue  # the preferred replica is down or not in the ISR: try again next time
    return ControllerResult(records, False)


def _not_led_by_preferred(image: ClusterImage) -> Iterator[tuple[TopicImage, int]]:
    for topic, number, state in image.partitions():
        if state.leader != state.preferred_leader and image.is_active(state.preferred_leader):
            yield topic, number
