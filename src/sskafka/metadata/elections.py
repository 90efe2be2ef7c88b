"""Who leads and who is in sync when a broker goes or comes.

A broker goes (it is fenced, stops, or was restarted):
    it leaves every ISR it shares; where it led, the first other in-sync replica that is active leads, or nobody.
    The last member of an ISR is never dropped without trace: with eligible leader replicas (KIP-966) it becomes one and
    the ISR is empty, without them it stays in the ISR. Either way the partition waits for it.

A broker comes (it is unfenced):
    partitions without a leader that wait for it are led by it.
"""

from collections.abc import Callable, Iterator

from sskafka.metadata.image import ClusterImage
from sskafka.metadata.partition_image import PartitionImage
from sskafka.metadata.records import NO_LEADER, PartitionChangeRecord
from sskafka.model.ids import Uuid

MinInsync = Callable[[str], int]
"""min.insync.replicas of a topic, by name."""


def changes_as_broker_goes(
    image: ClusterImage, broker_id: int, min_insync: MinInsync
) -> Iterator[PartitionChangeRecord]:
    for topic, number, state in image.partitions():
        if broker_id in state.isr or state.leader == broker_id:
            isr = tuple(replica for replica in state.isr if replica != broker_id)
            leader = _first_active(image, state, isr, without=broker_id)
            yield from _change(image, topic.topic_id, number, state, isr, leader, min_insync(topic.name))


def changes_as_broker_comes(
    image: ClusterImage, broker_id: int, min_insync: MinInsync
) -> Iterator[PartitionChangeRecord]:
    """`image` may still show the broker as fenced."""
    for topic, number, state in image.partitions():
        if not state.has_leader and _waits_for(state, broker_id):
            isr = state.isr or (broker_id,)
            yield from _change(image, topic.topic_id, number, state, isr, broker_id, min_insync(topic.name))


def changes_as_broker_returns(
    image: ClusterImage, broker_id: int, min_insync: MinInsync
) -> Iterator[PartitionChangeRecord]:
    """The broker died and is back before anybody took its place: what it led it leads again, in a new epoch.

    Epochs must move, since a crash may have cost it records that consumers have seen.
    """
    for topic, number, state in image.partitions():
        if state.leader == broker_id:
            yield PartitionChangeRecord(number, topic.topic_id, leader=broker_id)
    yield from changes_as_broker_comes(image, broker_id, min_insync)


def _waits_for(state: PartitionImage, broker_id: int) -> bool:
    if state.isr:
        return broker_id in state.isr
    return broker_id in (state.eligible_leader_replicas or state.last_known_eligible_leader_replicas)


def _first_active(image: ClusterImage, state: PartitionImage, isr: tuple[int, ...], without: int) -> int:
    if state.leader != without:
        return state.leader
    candidates = (replica for replica in state.replicas if replica in isr and image.is_active(replica))
    return next(candidates, NO_LEADER)


def _change(
    image: ClusterImage,
    topic_id: Uuid,
    number: int,
    state: PartitionImage,
    isr: tuple[int, ...],
    leader: int,
    min_insync: int,
) -> Iterator[PartitionChangeRecord]:
    record = PartitionChangeRecord(number, topic_id)
    if not isr and not image.uses_eligible_leader_replicas:
        isr = state.isr
    if isr != state.isr:
        record.isr = list(isr)
    if leader != state.leader:
        record.leader = leader
    if image.uses_eligible_leader_replicas:
        _note_eligible_leaders(record, state, isr, leader, min_insync)
    if record != PartitionChangeRecord(number, topic_id):
        yield record


def _note_eligible_leaders(
    record: PartitionChangeRecord, state: PartitionImage, isr: tuple[int, ...], leader: int, min_insync: int
) -> None:
    """Those who left an ISR that is now too small stay eligible, for nothing was committed without them since."""
    enough = min(min_insync, len(state.replicas))
    known = dict.fromkeys((*state.eligible_leader_replicas, *state.isr))
    eligible = tuple(replica for replica in known if replica not in isr) if len(isr) < enough else ()
    if eligible != state.eligible_leader_replicas:
        record.eligible_leader_replicas = list(eligible)
    last_known = state.last_known_eligible_leader_replicas
    if len(isr) >= enough and last_known:
        record.last_known_elr = []
    elif leader == NO_LEADER and state.has_leader and last_known != (state.leader,):
        record.last_known_elr = [state.leader]
