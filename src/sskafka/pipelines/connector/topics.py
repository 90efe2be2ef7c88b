"""Topics that the connector and pipelines create: with as many replicas as the cluster allows, up to 3.

brokers    replicas    min.insync.replicas
1          1           1
2          2           1                       with 2, the failure of one broker would stop the query
3, more    3           2

Registered brokers count, also those that are down: a replica on such a broker follows when the broker returns, and
nothing would add one to a topic that was created with fewer.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from sskafka.client.admin import Admin, NewTopic
from sskafka.client.errors import UnsupportedApiError
from sskafka.client.metadata import TopicView
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.pipelines.connector.planning import ClusterSession

REPLICAS_MAX = 3
MOVES_SHOWN_MAX = 12


def create_topics(session: ClusterSession, topics: Sequence[NewTopic]) -> list[str]:
    """Create the missing topics, and return their names; existing topics are not changed."""
    created: list[str] = []
    left, replicas = list(topics), min(REPLICAS_MAX, _registered_brokers(session))
    while left:
        outcomes = session.run(Admin(session.cluster).create_topics([replicated(topic, replicas) for topic in left]))
        failed = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, KafkaError)}
        created += (name for name in outcomes if name not in failed)
        for error in failed.values():
            is_too_many = error.code == ErrorCode.INVALID_REPLICATION_FACTOR and replicas > 1
            if not is_too_many and error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise error
        left = [topic for topic in left if _is_refused(failed.get(topic.name))]
        replicas -= 1  # brokers that are drained or shutting down are registered, and get no new replicas
    return created


def _is_refused(error: KafkaError | None) -> bool:
    return error is not None and error.code == ErrorCode.INVALID_REPLICATION_FACTOR


def _registered_brokers(session: ClusterSession) -> int:
    """Return the number of brokers; older versions of Apache Kafka list only those that are up."""
    try:
        return len(session.run(Admin(session.cluster).describe_cluster(include_fenced=True)).brokers)
    except UnsupportedApiError:
        return len(session.run(session.cluster.retrying(session.cluster.brokers)))


def replicated(topic: NewTopic, brokers: int) -> NewTopic:
    replicas = max(1, min(REPLICAS_MAX, brokers))
    configs = {"min.insync.replicas": min_in_sync(replicas), **topic.configs}
    return replace(topic, replication_factor=replicas, configs=configs)


def min_in_sync(replicas: int) -> str:
    return str(max(1, replicas - 1))


class _Lacking(NamedTuple):
    """A topic whose partitions have fewer replicas than the brokers that are up allow."""

    topic: str
    replicas: int
    moves: list[str]
    """The arguments of `sskafka cluster reassign` that add replicas."""


def replica_notice(session: ClusterSession, names: Sequence[str], bootstrap: str) -> str:
    """Return a sentence, with the commands that add replicas, if topics have fewer than the brokers that are up allow.

    Such topics were created when the cluster was smaller. Nothing is moved here: copies need disk space and network,
    and a user may have chosen fewer."""
    view = session.run(session.cluster.retrying(lambda: session.cluster.refresh(names)))
    brokers = sorted(view.brokers)
    wanted = min(REPLICAS_MAX, len(brokers))
    found = [_lacking(view.topics[name], brokers, wanted) for name in dict.fromkeys(names) if name in view.topics]
    lacking = [topic for topic in found if topic is not None]
    return _notice(lacking, wanted, bootstrap) if lacking else ""


def _lacking(topic: TopicView, brokers: Sequence[int], wanted: int) -> _Lacking | None:
    replicas = min((len(one.replicas) for one in topic.partitions.values()), default=wanted)
    if replicas >= wanted:
        return None
    moves = []
    for number, partition in sorted(topic.partitions.items()):
        others = [broker for broker in brokers if broker not in partition.replicas]
        turn = number % len(others) if others else 0
        target = [*partition.replicas, *others[turn:], *others[:turn]][: max(wanted, len(partition.replicas))]
        if len(target) > len(partition.replicas):
            moves.append(f"{topic.name}:{number}={','.join(map(str, target))}")
    return _Lacking(topic.name, replicas, moves)


def _notice(lacking: Sequence[_Lacking], wanted: int, bootstrap: str) -> str:
    names, moves = " ".join(one.topic for one in lacking), [move for one in lacking for move in one.moves]
    counts = ", ".join(f"{one.topic} has {one.replicas}" for one in lacking)
    how = " ".join(moves) if len(moves) <= MOVES_SHOWN_MAX else "--file PLAN"
    return (
        f"the cluster allows {wanted} replicas of each partition, and {counts}: a broker that fails stops the run. To "
        f"add replicas: `sskafka cluster reassign {how} -b {bootstrap}`, then "
        f"`sskafka topic alter {names} -c min.insync.replicas={min_in_sync(wanted)} -b {bootstrap}`"
    )
