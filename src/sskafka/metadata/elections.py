"""Who leads and who is in sync when brokers go, come back, or start anew.

goes       (fenced, shutting down, unregistered) it leaves every ISR; where it led, another leads, or nobody
restarts   (registers in a new life) it goes, and what it cannot be trusted with is forgotten: after a stop that was not
           clean it is no eligible leader (KIP-966), with another disk not even a last resort
comes      (unfenced) partitions that wait for it are led by it

How ISR, eligible leaders and leader follow from each other is told in `partition_change`.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

from sskafka.metadata.broker_registration import BrokerRegistration
from sskafka.metadata.election_rules import ElectionRules
from sskafka.metadata.partition_change import TRUST, Distrust, adopted_directories, plan_change, without
from sskafka.metadata.records import NO_LEADER_CHANGE, PartitionChangeRecord


def changes_as_brokers_go(rules: ElectionRules, broker_ids: Collection[int]) -> Iterator[PartitionChangeRecord]:
    """`rules` know them as going."""
    for topic, number, state in rules.image.partitions():
        if state.leader in broker_ids or not set(state.isr).isdisjoint(broker_ids):
            wanted = replace(state, isr=without(state.isr, broker_ids))
            yield from _maybe(plan_change(rules, topic, number, wanted))


def changes_as_broker_comes(rules: ElectionRules, broker_id: int) -> Iterator[PartitionChangeRecord]:
    """`rules` know it as coming."""
    for topic, number, state in rules.image.partitions():
        if not state.has_leader and broker_id in state.replicas:
            yield from _maybe(plan_change(rules, topic, number, state))


def changes_as_broker_restarts(
    rules: ElectionRules, broker: BrokerRegistration, *, stopped_cleanly: bool
) -> Iterator[PartitionChangeRecord]:
    """`broker` is the new life, `rules` know it as going: it is fenced until it has caught up."""
    for topic, number, state in rules.image.partitions():
        if broker.id not in state.replicas:
            continue
        directories = adopted_directories(state, broker)
        has_other_disk = directories != state.directories
        if not rules.keeps_eligible_leaders and state.isr == (broker.id,):
            directories = state.directories  # it stays in the ISR, and a directory that is gone keeps it from leading
        wanted = replace(state, isr=without(state.isr, (broker.id,)), directories=directories)
        distrust = _distrust(rules, broker, stopped_cleanly, has_other_disk)
        yield from _maybe(plan_change(rules, topic, number, wanted, distrust=distrust))


def changes_as_only_broker_returns(
    rules: ElectionRules, broker: BrokerRegistration, *, has_lived: bool
) -> Iterator[PartitionChangeRecord]:
    """What the only broker led when it died it leads again; nobody else could. `rules` know it as coming.

    Leader epochs must move, since a crash may have cost it records that consumers have seen. Of a broker that was never
    registered there is nothing to lose: what somebody has prepared for it keeps its epochs.
    """
    for topic, number, state in rules.image.partitions():
        if broker.id in state.replicas:
            wanted = replace(state, directories=adopted_directories(state, broker))
            record = plan_change(rules, topic, number, wanted) or PartitionChangeRecord(number, topic.topic_id)
            if has_lived and state.leader == broker.id and record.leader == NO_LEADER_CHANGE:
                record.leader = broker.id
            if record != PartitionChangeRecord(number, topic.topic_id):
                yield record


def changes_as_settings_move(rules: ElectionRules) -> Iterator[PartitionChangeRecord]:
    """Where fewer replicas must be in sync by now, the ISR may commit without those who were eligible to lead; where
    unclean elections are allowed by now, somebody may lead. `rules` know the new settings.
    """
    for topic, number, state in rules.image.partitions():
        enough = min(rules.min_insync(topic.name), len(state.replicas))
        if not state.has_leader:
            yield from _maybe(plan_change(rules, topic, number, state))
        elif state.eligible_leader_replicas and len(state.isr) >= enough:
            yield PartitionChangeRecord(number, topic.topic_id, eligible_leader_replicas=[])


def _distrust(
    rules: ElectionRules, broker: BrokerRegistration, stopped_cleanly: bool, has_other_disk: bool
) -> Distrust:
    if has_other_disk:
        return Distrust(empty=(broker.id,))
    if rules.keeps_eligible_leaders and not stopped_cleanly:
        return Distrust(unclean=(broker.id,))
    return TRUST


def _maybe(record: PartitionChangeRecord | None) -> Iterator[PartitionChangeRecord]:
    if record is not None:
        yield record
