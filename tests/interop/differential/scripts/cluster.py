"""Cluster, quorum, log directories, features, elections, coordinators, and reassignments with one broker."""

from differential.scripts.common import create_topic
from differential.scripts.fetch import filled
from differential.session import Session


def cluster(session: Session) -> None:
    for authorized in (False, True):
        for kind in (1, 2, 0, 9):
            session.ask_each(
                "DescribeCluster",
                include_cluster_authorized_operations=authorized,
                endpoint_type=kind,
                note=f"endpoints {kind}",
            )
    session.ask("DescribeCluster", include_fenced_brokers=True)


def quorum(session: Session) -> None:
    for topic, partition in (("__cluster_metadata", 0), ("__cluster_metadata", 1), (session.name("none"), 0)):
        session.ask_each(
            "DescribeQuorum",
            topics=[{"topic_name": topic, "partitions": [{"partition_index": partition}]}],
            note=f"{topic}-{partition}",
        )
    session.ask_each("DescribeQuorum", topics=[], note="nothing")
    one = {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}
    session.ask_each(
        "DescribeQuorum",
        topics=[one, {"topic_name": "other", "partitions": [{"partition_index": 0}]}],
        note="two topics",
    )


def log_directories(session: Session) -> None:
    topic, _ = filled(session, "sized")
    session.ask_each("DescribeLogDirs", topics=[{"topic": topic, "partitions": [0, 1]}])
    session.ask_each("DescribeLogDirs", topics=[{"topic": topic, "partitions": [9]}], note="unknown partition")
    session.ask_each(
        "DescribeLogDirs", topics=[{"topic": session.name("none"), "partitions": [0]}], note="unknown topic"
    )
    session.ask_each("DescribeLogDirs", topics=[], note="nothing")
    session.ask_each(
        "AlterReplicaLogDirs",
        dirs=[{"path": "/nowhere", "topics": [{"name": topic, "partitions": [0]}]}],
        note="a directory that is none",
    )
    session.ask_each(
        "AlterReplicaLogDirs",
        dirs=[{"path": "relative", "topics": [{"name": topic, "partitions": [0]}]}],
        note="a relative path",
    )
    described = session.look("DescribeLogDirs", topics=[{"topic": topic, "partitions": [0]}])
    home = described.results[0].log_dir
    session.ask_each(
        "AlterReplicaLogDirs", dirs=[{"path": home, "topics": [{"name": topic, "partitions": [0]}]}], note="where it is"
    )
    session.ask_each(
        "AlterReplicaLogDirs",
        dirs=[{"path": home, "topics": [{"name": session.name("none"), "partitions": [0]}]}],
        note="an unknown topic",
    )
    session.ask_each("AlterReplicaLogDirs", dirs=[], note="nothing")


FEATURES = (
    ("metadata.version", 1), ("metadata.version", 30), ("metadata.version", 29), ("metadata.version", 99),
    ("metadata.version", 0), ("transaction.version", 2), ("transaction.version", 3), ("transaction.version", -1),
    ("group.version", 1), ("group.version", 0),
    ("no.such.feature", 1), ("", 1),
)  # fmt: skip


def features(session: Session) -> None:
    for name, level in FEATURES:
        for kind in (1, 2, 3, 7):
            session.ask_each(
                "UpdateFeatures",
                validate_only=True,
                timeout_ms=5000,
                note=f"{name} to {level}, type {kind}",
                feature_updates=[{"feature": name, "max_version_level": level, "upgrade_type": kind}],
            )
    session.ask_each("UpdateFeatures", timeout_ms=5000, note="nothing")


def elections(session: Session) -> None:
    topic = session.name("elected")
    create_topic(session, topic, 2)
    for kind in (0, 1, 7):
        session.ask_each(
            "ElectLeaders",
            election_type=kind,
            topic_partitions=[{"topic": topic, "partitions": [0, 1, 9]}],
            timeout_ms=5000,
            note=f"type {kind}",
        )
        session.ask_each(
            "ElectLeaders",
            election_type=kind,
            topic_partitions=[{"topic": session.name("none"), "partitions": [0]}],
            timeout_ms=5000,
            note=f"type {kind}, unknown",
        )
    for version in session.versions("ElectLeaders"):
        elected = session.look("ElectLeaders", version=version, topic_partitions=None, timeout_ms=5000)
        elected.replica_election_results = [one for one in elected.replica_election_results if one.topic == topic]
        session.record("ElectLeaders", version, "all", None, elected)
    for kind in (0, 1, -1, 5):
        session.ask_each(
            "ElectLeaders", election_type=kind, topic_partitions=[], timeout_ms=5000, note=f"nothing, type {kind}"
        )


def one_broker_reassignments(session: Session) -> None:
    topic = session.name("moved")
    create_topic(session, topic)
    for replicas in ([1], [1, 1], [77], [], [-1], None):
        session.ask_each(
            "AlterPartitionReassignments",
            timeout_ms=5000,
            note=f"to {replicas}",
            topics=[{"name": topic, "partitions": [{"partition_index": 0, "replicas": replicas}]}],
        )
    session.ask_each(
        "AlterPartitionReassignments",
        timeout_ms=5000,
        note="unknown",
        topics=[
            {"name": topic, "partitions": [{"partition_index": 5, "replicas": [1]}]},
            {"name": session.name("none"), "partitions": [{"partition_index": 0, "replicas": [1]}]},
        ],
    )
    session.ask_each("AlterPartitionReassignments", timeout_ms=5000, topics=[], note="nothing")
    session.ask("ListPartitionReassignments", timeout_ms=5000)
    session.ask(
        "ListPartitionReassignments",
        timeout_ms=5000,
        topics=[{"name": topic, "partition_indexes": [0, 9]}, {"name": session.name("none"), "partition_indexes": [0]}],
    )
    session.ask("ListPartitionReassignments", timeout_ms=5000, topics=[])


def coordinators(session: Session) -> None:
    for kind in (0, 1, 2, 7, -1):
        for key in (session.name("key"), ""):
            session.ask_versions(
                "FindCoordinator",
                lambda version, k=key, t=kind: {
                    "key_type": t,
                    **({"key": k} if version < 4 else {"coordinator_keys": [k, k + "x"]}),
                },
                note=f"type {kind}, key {key!r}",
            )
    session.ask("FindCoordinator", coordinator_keys=[], note="nothing")


def unregistration(session: Session) -> None:
    session.ask("UnregisterBroker", broker_id=99)
    session.ask("UnregisterBroker", broker_id=-1)
