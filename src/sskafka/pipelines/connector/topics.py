"""Topics that the connector and pipelines create: with as many replicas as the cluster allows, up to 3.

brokers    replicas    min.insync.replicas
1          1           1
2          2           1                       with 2, the failure of one broker would stop the query
3, more    3           2
"""

from collections.abc import Sequence
from dataclasses import replace

from sskafka.client.admin import Admin, NewTopic
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.pipelines.connector.planning import ClusterSession

REPLICAS_MAX = 3


def create_topics(session: ClusterSession, topics: Sequence[NewTopic]) -> list[str]:
    """Create the missing topics, and return their names; existing topics are not changed."""
    brokers = len(session.run(session.cluster.retrying(session.cluster.brokers)))
    wanted = [replicated(topic, brokers) for topic in topics]
    outcomes = session.run(Admin(session.cluster).create_topics(wanted))
    for outcome in outcomes.values():
        if isinstance(outcome, KafkaError) and outcome.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            raise outcome
    return [name for name, outcome in outcomes.items() if not isinstance(outcome, KafkaError)]


def replicated(topic: NewTopic, brokers: int) -> NewTopic:
    replicas = max(1, min(REPLICAS_MAX, brokers))
    in_sync = str(max(1, replicas - 1))
    return replace(topic, replication_factor=replicas, configs={"min.insync.replicas": in_sync, **topic.configs})
