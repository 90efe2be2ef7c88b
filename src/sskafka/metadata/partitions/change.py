"""Derive the PartitionChangeRecord from the current state of a partition and the wanted one.

The caller states what is wanted: other replicas, or another ISR. Everything that follows from it is decided here, in
this order, so that every change keeps the same invariants:

1. reassignment   completes when all adding replicas are in the ISR and the ISR without the removed ones is large enough
2. ELR            replicas that leave an ISR which is then below min.insync.replicas stay eligible leaders (KIP-966):
                  nothing is committed while the ISR is that small, so they have all committed records
3. leader         the current one if it can lead; else, in the order of the replicas, one in the ISR, then one in the
                  ELR; if both are empty, the last known leader; else, if unclean elections are allowed, any replica.
                  The last two are unclean: the ISR becomes that replica alone, in state RECOVERING
4. ISR            without ELR, the last members of an ISR stay in it, and the partition waits for them
5. last leader    is recorded when a partition loses its leader

    ISR >= min.insync     ELR empty              leader: from the ISR
    ISR <  min.insync     ELR: left the ISR      leader: from the ISR, then from the ELR
    ISR empty             ELR, last leader       leader: none until one of them returns
"""

from collections.abc import Collection
from dataclasses import replace
from enum import Enum
from typing import NamedTuple

from sskafka.metadata.brokers.registration import BrokerRegistration
from sskafka.metadata.election_rules import ElectionRules
from sskafka.metadata.image import TopicImage
from sskafka.metadata.partitions.image import PartitionImage
from sskafka.metadata.records import NO_LEADER, PartitionChangeRecord
from sskafka.model.ids import Uuid
from sskafka.model.values import value

RECOVERED, RECOVERING = 0, 1
"""Values of `leader_recovery_state`."""


class Election(Enum):
    ONLINE = "keep the leader if it can lead"
    PREFERRED = "the first replica, if it can lead"
    UNCLEAN = "as ONLINE, but any replica rather than none"


@value
class UnreliableLogs:
    """Replicas whose logs may have lost their end, or everything."""

    unclean: Collection[int] = ()
    """Restarted after an unclean shutdown: neither in the ISR nor eligible, but still usable as last known leader."""
    empty: Collection[int] = ()
    """Returned with another disk: not usable as last known leader either."""


ALL_RELIABLE = UnreliableLogs()


class _Elected(NamedTuple):
    leader: int
    is_clean: bool


def plan_change(
    rules: ElectionRules,
    topic: TopicImage,
    number: int,
    wanted: PartitionImage,
    *,
    election: Election | None = None,
    unreliable: UnreliableLogs = ALL_RELIABLE,
) -> PartitionChangeRecord | None:
    """Return the record that changes the partition to `wanted`, or None if nothing changes.

    `wanted` is the partition with other replicas, ISR, directories or recovery state."""
    if election is None:
        election = Election.UNCLEAN if rules.allows_unclean(topic.name) else Election.ONLINE
    state = topic.partitions[number]
    min_insync = rules.min_insync(topic.name)
    wanted = _completed_reassignment(wanted, min_insync)
    enough = min(min_insync, len(wanted.replicas))
    eligible = _eligible_leaders(rules, state, wanted, enough, unreliable)
    wanted = _with_leader(rules, replace(wanted, eligible_leader_replicas=eligible), election, unreliable)
    wanted = _with_final_isr(rules, state, wanted, enough)
    wanted = replace(wanted, last_known_eligible_leader_replicas=_last_leader(rules, state, wanted, unreliable))
    return difference(topic, number, wanted)


def difference(topic: TopicImage, number: int, wanted: PartitionImage) -> PartitionChangeRecord | None:
    """Return the record that changes the partition to exactly `wanted`, or None if it is equal."""
    state = topic.partitions[number]
    record = PartitionChangeRecord(number, topic.topic_id)
    if wanted.isr != state.isr:
        record.isr = list(wanted.isr)
    if wanted.leader != state.leader or not set(state.replicas) <= set(wanted.replicas):
        # Also if the leader stays the same: the new leader epoch stops removed replicas from counting as followers.
        record.leader = wanted.leader
    _note_assignment(record, state, wanted)
    _note_eligible_leaders(record, state, wanted)
    if wanted.leader_recovery_state != state.leader_recovery_state:
        record.leader_recovery_state = wanted.leader_recovery_state
    return None if record == PartitionChangeRecord(number, topic.topic_id) else record


def without(replicas: tuple[int, ...], removed: Collection[int]) -> tuple[int, ...]:
    return tuple(replica for replica in replicas if replica not in removed)


def adopted_directories(state: PartitionImage, broker: BrokerRegistration) -> tuple[Uuid, ...]:
    """Return the directories, with the broker's replica in its new directory if its only directory was replaced.

    A broker with several directories reports them with AssignReplicasToDirs.
    """
    if broker.has_directory(state.directory_of(broker.id)) or len(broker.directories) != 1:
        return state.directories
    index = state.replicas.index(broker.id)
    return (*state.directories[:index], broker.directories[0], *state.directories[index + 1 :])


def _completed_reassignment(wanted: PartitionImage, min_insync: int) -> PartitionImage:
    """Complete a reassignment, if possible.

    Kafka completes it as soon as one in-sync replica remains. Records that min.insync.replicas brokers have
    acknowledged could then be on fewer brokers, so min.insync.replicas in-sync replicas must remain here.
    """
    if not wanted.is_reassigning:
        return wanted
    replicas = without(wanted.replicas, wanted.removing_replicas)
    isr = without(wanted.isr, wanted.removing_replicas)
    if not set(wanted.adding_replicas) <= set(isr) or len(isr) < min(min_insync, len(replicas)):
        return wanted
    directories = tuple(wanted.directory_of(replica) for replica in replicas)
    return replace(
        wanted, replicas=replicas, isr=isr, directories=directories, adding_replicas=(), removing_replicas=()
    )


def _eligible_leaders(
    rules: ElectionRules, state: PartitionImage, wanted: PartitionImage, enough: int, unreliable: UnreliableLogs
) -> tuple[int, ...]:
    if not rules.keeps_eligible_leaders or len(wanted.isr) >= enough:
        return ()
    known = dict.fromkeys((*state.eligible_leader_replicas, *state.isr))
    left = without(tuple(known), (*wanted.isr, *unreliable.unclean, *unreliable.empty))
    return tuple(replica for replica in left if replica in wanted.replicas)


def _with_leader(
    rules: ElectionRules, wanted: PartitionImage, election: Election, unreliable: UnreliableLogs
) -> PartitionImage:
    leader, is_clean = _elect(rules, wanted, election, unreliable)
    if leader == NO_LEADER or (leader in wanted.isr and is_clean):
        return replace(wanted, leader=leader)
    eligible = (*wanted.eligible_leader_replicas, *wanted.isr)
    led = replace(wanted, leader=leader, isr=(leader,), eligible_leader_replicas=eligible)
    return led if is_clean else _with_unclean_leader(rules, led)


def _with_unclean_leader(rules: ElectionRules, led: PartitionImage) -> PartitionImage:
    broker = rules.live_broker(led.leader)
    assert broker is not None, "only live brokers are elected"
    directories = adopted_directories(led, broker)
    return replace(led, directories=directories, eligible_leader_replicas=(), leader_recovery_state=RECOVERING)


def _elect(rules: ElectionRules, wanted: PartitionImage, election: Election, unreliable: UnreliableLogs) -> _Elected:
    able = [replica for replica in wanted.replicas if rules.can_lead(wanted, replica)]
    for trusted in (wanted.isr, wanted.eligible_leader_replicas):
        candidates = [replica for replica in able if replica in trusted]
        if candidates:
            return _Elected(_preferred_candidate(wanted, candidates, election), is_clean=True)
    if not wanted.isr and not wanted.eligible_leader_replicas:
        last = [replica for replica in wanted.last_known_eligible_leader_replicas if replica in able]
        if last and rules.keeps_eligible_leaders and last[0] not in unreliable.empty:
            return _Elected(last[0], is_clean=False)
    last_resorts = able or [replica for replica in wanted.replicas if rules.live_broker(replica)]
    if election is Election.UNCLEAN and last_resorts:
        return _Elected(last_resorts[0], is_clean=False)
    return _Elected(NO_LEADER, is_clean=True)


def _preferred_candidate(wanted: PartitionImage, candidates: list[int], election: Election) -> int:
    if election is Election.PREFERRED and wanted.replicas[0] in candidates:
        return wanted.replicas[0]
    return wanted.leader if wanted.leader in candidates else candidates[0]


def _with_final_isr(rules: ElectionRules, state: PartitionImage, wanted: PartitionImage, enough: int) -> PartitionImage:
    """Return the partition with its ISR and ELR after the leader is known."""
    if not rules.keeps_eligible_leaders:
        return replace(wanted, isr=_isr_without_elr(rules, state, wanted), eligible_leader_replicas=())
    if len(wanted.isr) >= enough or wanted.leader_recovery_state == RECOVERING:
        return replace(wanted, eligible_leader_replicas=())
    return replace(wanted, eligible_leader_replicas=without(wanted.eligible_leader_replicas, wanted.isr))


def _isr_without_elr(rules: ElectionRules, state: PartitionImage, wanted: PartitionImage) -> tuple[int, ...]:
    """Without ELR, keep the last members of the ISR while the partition has no leader."""
    if not wanted.isr:
        return tuple(replica for replica in state.isr if replica in wanted.replicas) or wanted.replicas[:1]
    if wanted.has_leader and not state.has_leader:
        return tuple(replica for replica in wanted.isr if rules.can_lead(wanted, replica))
    return wanted.isr


def _last_leader(
    rules: ElectionRules, state: PartitionImage, wanted: PartitionImage, unreliable: UnreliableLogs
) -> tuple[int, ...]:
    if wanted.has_leader or not rules.keeps_eligible_leaders:
        return ()
    known = (state.leader,) if state.has_leader else state.last_known_eligible_leader_replicas
    return tuple(replica for replica in without(known, unreliable.empty) if replica in wanted.replicas)


def _note_assignment(record: PartitionChangeRecord, state: PartitionImage, wanted: PartitionImage) -> None:
    if wanted.replicas != state.replicas:
        record.replicas = list(wanted.replicas)
    if wanted.removing_replicas != state.removing_replicas:
        record.removing_replicas = list(wanted.removing_replicas)
    if wanted.adding_replicas != state.adding_replicas:
        record.adding_replicas = list(wanted.adding_replicas)
    if wanted.directories != state.directories:
        record.directories = list(wanted.directories)


def _note_eligible_leaders(record: PartitionChangeRecord, state: PartitionImage, wanted: PartitionImage) -> None:
    if wanted.eligible_leader_replicas != state.eligible_leader_replicas:
        record.eligible_leader_replicas = list(wanted.eligible_leader_replicas)
    if wanted.last_known_eligible_leader_replicas != state.last_known_eligible_leader_replicas:
        record.last_known_elr = list(wanted.last_known_eligible_leader_replicas)
