"""Leadership drifts away from the preferred replicas as brokers come and go; from time to time it is brought back.

A broker takes part when more than `imbalance_percentage` of the partitions that prefer it are led by others. Asked for
every leader.imbalance.check.interval.seconds where auto.leader.rebalance.enable is on.
"""

from sskafka.metadata.decision import Decision
from sskafka.metadata.elect_leaders import preferred_leader_change
from sskafka.metadata.election_rules import ElectionRules
from sskafka.metadata.image import ClusterImage, TopicImage
from sskafka.metadata.records import MetadataRecord
from sskafka.model.errors import KafkaError
from sskafka.model.settings import Settings

ELECTIONS_MAX = 1000
"""So many at once; a cluster after a great failure is rebalanced in several steps."""


def plan_leader_rebalance(
    image: ClusterImage, settings: Settings, *, imbalance_percentage: int = 10, elections_max: int = ELECTIONS_MAX
) -> Decision[bool]:
    """The response says whether there may be more to do at once."""
    if not settings["auto.leader.rebalance.enable"]:
        return Decision((), False)
    rules = ElectionRules(image, settings)
    records: list[MetadataRecord] = []
    for topic, number in _misled(image, imbalance_percentage):
        if len(records) == elections_max:
            return Decision(records, True)
        try:
            records.append(preferred_leader_change(rules, topic, number))
        except KafkaError:
            continue  # the preferred replica is down or behind: another time
    return Decision(records, False)


def _misled(image: ClusterImage, imbalance_percentage: int) -> list[tuple[TopicImage, int]]:
    """The partitions of imbalanced brokers that these do not lead."""
    preferring: dict[int, int] = {}
    misled: dict[int, list[tuple[TopicImage, int]]] = {}
    for topic, number, state in image.partitions():
        broker_id = state.preferred_leader
        preferring[broker_id] = preferring.get(broker_id, 0) + 1
        if state.leader != broker_id and image.is_active(broker_id):
            misled.setdefault(broker_id, []).append((topic, number))
    return [
        partition
        for broker_id, partitions in misled.items()
        if len(partitions) * 100 > preferring[broker_id] * imbalance_percentage
        for partition in partitions
    ]
