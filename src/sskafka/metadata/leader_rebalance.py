"""Leadership drifts away from the preferred replicas as brokers come and go; from time to time it is brought back.

Asked for every leader.imbalance.check.interval.seconds where auto.leader.rebalance.enable is on. As in Kafka's KRaft
controller every partition counts whose preferred replica could lead it, however few they are.
"""

from collections.abc import Iterator

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
    image: ClusterImage, settings: Settings, *, elections_max: int = ELECTIONS_MAX
) -> Decision[bool]:
    """The response says whether there may be more to do at once."""
    if not settings["auto.leader.rebalance.enable"]:
        return Decision((), False)
    rules = ElectionRules(image, settings)
    records: list[MetadataRecord] = []
    for topic, number in _misled(image):
        if len(records) == elections_max:
            return Decision(records, True)
        try:
            records.append(preferred_leader_change(rules, topic, number))
        except KafkaError:
            continue  # the preferred replica is down or behind: another time
    return Decision(records, False)


def _misled(image: ClusterImage) -> Iterator[tuple[TopicImage, int]]:
    for topic, number, state in image.partitions():
        if state.leader != state.preferred_leader and image.is_active(state.preferred_leader):
            yield topic, number
