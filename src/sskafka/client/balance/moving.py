"""Carry out the moves of a plan: throttle, start, watch, finish, cancel.

A throttle limits each broker, as sender and as receiver. It is set as `kafka-reassign-partitions` sets it, so that
either tool can remove it: rates on brokers, replicas on topics.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from sskafka.client.balance.layout import Move
from sskafka.client.balance.reading import read_directories
from sskafka.client.cluster import Cluster
from sskafka.client.configs import Resource, alter_configs
from sskafka.client.partition_moves import alter_reassignments, elect_leaders, list_reassignments
from sskafka.model.cordoned_directories import ALL_DIRECTORIES, CORDONED
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
MOVES_PER_REQUEST = 500
CORDON_TIMEOUT_MS = 5_000
_POLL_S = 0.02


class MoveProgress(NamedTuple):
    moved: int
    """Partitions whose reassignment is done."""
    partitions: int
    copied_bytes: int
    planned_bytes: int

    @property
    def is_done(self) -> bool:
        return self.moved == self.partitions


async def set_cordoned(cluster: Cluster, node_id: int, is_cordoned: bool) -> None:
    """Stop or allow the placement of new replicas on a live broker, and wait until the broker has applied that."""
    change = {CORDONED: ALL_DIRECTORIES if is_cordoned else None}
    await _alter(cluster, {Resource.broker(node_id): change})
    deadline_ms = cluster.deadline_ms(CORDON_TIMEOUT_MS)
    while cluster.clock.monotonic_ms() < deadline_ms:
        found = (await read_directories(cluster, [node_id])).get(node_id)
        if found is None or found.is_cordoned == is_cordoned:
            return
        await asyncio.sleep(_POLL_S)


async def start_moves(cluster: Cluster, moves: Sequence[Move], throttle: int | None) -> None:
    """Start all moves; raise the first refusal. `throttle` is in bytes per second."""
    if throttle is not None:
        await _set_throttle(cluster, [move for move in moves if move.added], throttle)
    for start in range(0, len(moves), MOVES_PER_REQUEST):
        chosen = moves[start : start + MOVES_PER_REQUEST]
        outcomes = await alter_reassignments(cluster, {move.partition: move.after for move in chosen})
        for partition, error in outcomes.items():
            if error is not None:
                raise KafkaError(error.code, f"{partition}: {error}")


async def read_progress(cluster: Cluster, moves: Sequence[Move]) -> MoveProgress:
    ongoing = await list_reassignments(cluster)
    copied = done = 0
    waiting = [move for move in moves if move.partition in ongoing]
    receivers = {replica for move in waiting for replica in move.added}
    directories = await read_directories(cluster, receivers) if receivers else {}
    for move in moves:
        if move.partition not in ongoing:
            done += 1
            copied += move.copied_bytes
            continue
        for replica in move.added:
            sizes = directories[replica].replica_bytes if replica in directories else {}
            copied += min(sizes.get(move.partition, 0), move.size_bytes)
    return MoveProgress(done, len(moves), copied, sum(move.copied_bytes for move in moves))


async def elect_preferred(cluster: Cluster, partitions: Collection[TopicPartition]) -> dict[TopicPartition, KafkaError]:
    """Elect the preferred leaders; return the partitions that have another leader, with the reason."""
    if not partitions:
        return {}
    outcomes = await elect_leaders(cluster, partitions)
    return {
        partition: error
        for partition, error in outcomes.items()
        if error is not None and error.code != ErrorCode.ELECTION_NOT_NEEDED
    }


async def cancel_moves(cluster: Cluster, topics: Collection[str] | None) -> list[TopicPartition]:
    """Cancel the ongoing reassignments of the topics (None: all) and remove their throttles."""
    ongoing = await list_reassignments(cluster)
    chosen = {partition: move for partition, move in ongoing.items() if topics is None or partition.topic in topics}
    outcomes = await alter_reassignments(cluster, dict.fromkeys(chosen))
    for partition, error in outcomes.items():
        if error is not None and error.code != ErrorCode.NO_REASSIGNMENT_IN_PROGRESS:
            raise KafkaError(error.code, f"{partition}: {error}")
    node_ids = {replica for move in chosen.values() for replica in move.replicas}
    await clear_throttle(cluster, {partition.topic for partition in chosen}, node_ids)
    return sorted(chosen)


async def clear_throttle(cluster: Cluster, topics: Iterable[str], node_ids: Iterable[int]) -> None:
    """Remove the throttles of these topics and brokers. Brokers that are down are left out."""
    changes: dict[Resource, Mapping[str, str | None]] = {
        Resource.topic(topic): {LEADER_REPLICAS: None, FOLLOWER_REPLICAS: None} for topic in topics
    }
    for node_id in await _live(cluster, node_ids):
        changes[Resource.broker(node_id)] = {LEADER_RATE: None, FOLLOWER_RATE: None}
    await _alter(cluster, changes)


async def clear_throttle_of(cluster: Cluster, moves: Iterable[Move]) -> None:
    copies = [move for move in moves if move.added]
    node_ids = {replica for move in copies for replica in (*move.before, *move.after)}
    await clear_throttle(cluster, {move.partition.topic for move in copies}, node_ids)


async def _set_throttle(cluster: Cluster, moves: Sequence[Move], bytes_per_second: int) -> None:
    senders: dict[str, list[str]] = defaultdict(list)
    receivers: dict[str, list[str]] = defaultdict(list)
    for move in moves:
        topic, number = move.partition
        senders[topic] += [f"{number}:{replica}" for replica in move.before]
        receivers[topic] += [f"{number}:{replica}" for replica in move.added]
    changes: dict[Resource, Mapping[str, str | None]] = {
        Resource.topic(topic): {
            LEADER_REPLICAS: ",".join(senders[topic]),
            FOLLOWER_REPLICAS: ",".join(receivers[topic]),
        }
        for topic in senders
    }
    rate = str(bytes_per_second)
    for node_id in await _live(cluster, {replica for move in moves for replica in (*move.before, *move.after)}):
        changes[Resource.broker(node_id)] = {LEADER_RATE: rate, FOLLOWER_RATE: rate}
    await _alter(cluster, changes)


async def _live(cluster: Cluster, node_ids: Iterable[int]) -> list[int]:
    live = {broker.node_id for broker in await cluster.brokers()}
    return sorted(live & set(node_ids))


async def _alter(cluster: Cluster, changes: Mapping[Resource, Mapping[str, str | None]]) -> None:
    for resource, error in (await alter_configs(cluster, changes)).items():
        if error is not None:
            raise KafkaError(error.code, f"{resource.type.name.lower()} {resource.name}: {error}")
