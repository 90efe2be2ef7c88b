"""Changes of leaders and ISRs when brokers stop, return, or restart.

stops      (fenced, shutting down, unregistered) it is removed from every ISR; partitions that it led get another leader
           or none
restarts   (registers as a new process) as above; in addition its logs are trusted less: after an unclean shutdown it is
           not an eligible leader (KIP-966), and with another disk it is not even a last resort
returns    (unfenced) partitions that wait for it elect it as leader

`partitions.change` derives ISR, eligible leaders and leader from each other.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

from sskafka.metadata.brokers.registration import BrokerRegistration
from sskafka.metadata.election_rules import ElectionRules
from sskafka.metadata.partitions.change import ALL_RELIABLE, UnreliableLogs, adopted_directories, plan_change, without
from sskafka.metadata.records import NO_LEADER_CHANGE, PartitionChangeRecord


def changes_when_brokers_stop(rules: ElectionRules, broker_ids: Collection[int]) -> Iterator[PartitionChangeRecord]:
    """`rules` must have the brokers as stopping."""
    for topic, number, state in rules.image.partitions():
        if state.leader in broker_ids or not set(state.isr).isdisjoint(broker_ids):
            wanted = replace(state, isr=without(state.isr, broker_ids))
            yield from _maybe(plan_change(rules, topic, number, wanted))


def changes_when_broker_returns(rules: ElectionRules, broker_id: int) -> Iterator[PartitionChangeRecord]:
    """`rules` must have the broker as starting."""
    for topic, number, state in rules.image.partitions():
        if not state.has_leader and broker_id in state.replicas:
            yield from _maybe(plan_change(rules, topic, number, state))


def changes_when_broker_restarts(
    rules: ElectionRules, broker: BrokerRegistration, *, stopped_cleanly: bool
) -> Iterator[PartitionChangeRecord]:
    """`broker` is the new registration. `rules` must have it as stopping: it is fenced until it has caught up."""
    for topic, number, state in rules.image.partitions():
        if broker.id not in state.replicas:
            continue
        directories = adopted_directories(state, broker)
        has_other_disk = directories != state.directories
        if not rules.keeps_eligible_leaders and state.isr == (broker.id,):
            directories = state.directories  # It stays in the ISR; the missing directory keeps it from leading.
        wanted = replace(state, isr=without(state.isr, (broker.id,)), directories=directories)
        unreliable = _unreliable(rules, broker, stopped_cleanly, has_other_disk)
        yield from _maybe(plan_change(rules, topic, number, wanted, unreliable=unreliable))


def changes_when_only_broker_restarts(
    rules: ElectionRules, broker: BrokerRegistration, *, was_registered: bool
) -> Iterator[PartitionChangeRecord]:
    """Return the changes that let the only broker lead its partitions again. `rules` must have it as starting.

    Leader epochs are bumped, because a crash may have lost records that consumers have seen. A broker that was never
    registered has nothing to lose: partitions prepared for it keep their epochs.
    """
    for topic, number, state in rules.image.partitions():
        if broker.id in state.replicas:
            wanted = replace(state, directories=adopted_directories(state, broker))
            record = plan_change(rules, topic, number, wanted) or PartitionChangeRecord(number, topic.topic_id)
            if was_registered and state.leader == broker.id and record.leader == NO_LEADER_CHANGE:
                record.leader = broker.id
            if record != PartitionChangeRecord(number, topic.topic_id):
                yield record


def changes_when_settings_change(rules: ElectionRules) -> Iterator[PartitionChangeRecord]:
    """Return the changes after new settings, which `rules` must have.

    If fewer replicas must be in sync, the ISR may commit without the eligible leaders. If unclean elections are now
    allowed, a partition without a leader may get one.
    """
    for topic, number, state in rules.image.partitions():
        enough = min(rules.min_insync(topic.name), len(state.replicas))
        if not state.has_leader:
            yield from _maybe(plan_change(rules, topic, number, state))
        elif state.eligible_leader_replicas and len(state.isr) >= enough:
            yield PartitionChangeRecord(number, topic.topic_id, eligible_leader_replicas=[])


def _unreliable(
    rules: ElectionRules, broker: BrokerRegistration, stopped_cleanly: bool, has_other_disk: bool
) -> UnreliableLogs:
    if has_other_disk:
        return UnreliableLogs(empty=(broker.id,))
    if rules.keeps_eligible_leaders and not stopped_cleanly:
        return UnreliableLogs(unclean=(broker.id,))
    return ALL_RELIABLE


def _maybe(record: PartitionChangeRecord | None) -> Iterator[PartitionChangeRecord]:
    if record is not None:
        yield record
