"""CreateTopics, CreatePartitions, DeleteTopics, and what Metadata and DescribeTopicPartitions say of topics."""

from typing import Any

from differential.scripts.common import UNKNOWN_ID, create_topic
from differential.session import Session

GOOD: dict[str, Any] = {"num_partitions": 2, "replication_factor": 1}
CREATIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("plain", GOOD),
    ("default counts", {"num_partitions": -1, "replication_factor": -1}),
    ("no partitions", {"num_partitions": 0, "replication_factor": 1}),
    ("negative partitions", {"num_partitions": -5, "replication_factor": 1}),
    ("no replicas", {"num_partitions": 1, "replication_factor": 0}),
    ("negative replicas", {"num_partitions": 1, "replication_factor": -2}),
    ("too many replicas", {"num_partitions": 1, "replication_factor": 3}),
    (
        "settings",
        {
            **GOOD,
            "configs": [{"name": "retention.ms", "value": "1000000"}, {"name": "cleanup.policy", "value": "compact"}],
        },
    ),
    ("a setting without value", {**GOOD, "configs": [{"name": "retention.ms", "value": None}]}),
    ("an unknown setting", {**GOOD, "configs": [{"name": "no.such.setting", "value": "1"}]}),
    ("a value that is no number", {**GOOD, "configs": [{"name": "retention.ms", "value": "soon"}]}),
    ("a value out of range", {**GOOD, "configs": [{"name": "min.insync.replicas", "value": "0"}]}),
    ("a value that is no choice", {**GOOD, "configs": [{"name": "cleanup.policy", "value": "shred"}]}),
    (
        "a setting twice",
        {**GOOD, "configs": [{"name": "retention.ms", "value": "1"}, {"name": "retention.ms", "value": "2"}]},
    ),
    (
        "an assignment",
        {"num_partitions": -1, "replication_factor": -1, "assignments": [{"partition_index": 0, "broker_ids": [1]}]},
    ),
    ("an assignment and counts", {**GOOD, "assignments": [{"partition_index": 0, "broker_ids": [1]}]}),
    (
        "an assignment to nobody",
        {"num_partitions": -1, "replication_factor": -1, "assignments": [{"partition_index": 0, "broker_ids": []}]},
    ),
    (
        "an assignment to a stranger",
        {"num_partitions": -1, "replication_factor": -1, "assignments": [{"partition_index": 0, "broker_ids": [77]}]},
    ),
    (
        "an assignment twice",
        {"num_partitions": -1, "replication_factor": -1, "assignments": [{"partition_index": 0, "broker_ids": [1, 1]}]},
    ),
    (
        "an assignment that begins at 1",
        {"num_partitions": -1, "replication_factor": -1, "assignments": [{"partition_index": 1, "broker_ids": [1]}]},
    ),
    (
        "an assignment of one partition twice",
        {
            "num_partitions": -1,
            "replication_factor": -1,
            "assignments": [{"partition_index": 0, "broker_ids": [1]}, {"partition_index": 0, "broker_ids": [1]}],
        },
    ),
    (
        "assignments of unlike sizes",
        {
            "num_partitions": -1,
            "replication_factor": -1,
            "assignments": [{"partition_index": 0, "broker_ids": [1]}, {"partition_index": 1, "broker_ids": [1, 77]}],
        },
    ),
)
BAD_NAMES = ("", ".", "..", "bad name", "bad/name", "ä", "x" * 249, "x" * 250, "__cluster_metadata")


def creation(session: Session) -> None:
    for number, (note, fields) in enumerate(CREATIONS):
        for validate_only in (True, False):
            session.ask_versions(
                "CreateTopics",
                lambda version, n=number, f=fields, v=validate_only: {
                    "topics": [{"name": session.name(f"{n}-{version}"), **f}],
                    "validate_only": v,
                },
                note=f"{note}{', only validated' if validate_only else ''}",
            )


def names(session: Session) -> None:
    for name in BAD_NAMES:
        session.ask("CreateTopics", topics=[{"name": name, **GOOD}], validate_only=True, note=f"name {name[:20]!r}")
        session.ask_each(
            "Metadata", topics=[{"name": name}], allow_auto_topic_creation=False, note=f"name {name[:20]!r}"
        )
        session.ask("DescribeTopicPartitions", topics=[{"name": name}], note=f"name {name[:20]!r}")
    topic = session.name("a.b")
    session.ask("CreateTopics", topics=[{"name": topic, **GOOD}])
    session.ask("CreateTopics", topics=[{"name": topic.replace(".", "_"), **GOOD}], note="a name that collides")
    session.ask("CreateTopics", topics=[{"name": topic, **GOOD}], note="exists")
    session.ask("CreateTopics", topics=[{"name": topic, **GOOD}], note="exists, only validated", validate_only=True)
    twice = {"name": session.name("twice"), **GOOD}
    session.ask("CreateTopics", topics=[twice, twice], note="named twice")
    session.ask("CreateTopics", topics=[], note="no topics")
    session.ask("CreateTopics", topics=[twice, {"name": "bad/name", **GOOD}], note="one good, one bad")


def description(session: Session) -> None:
    one, two = session.name("one"), session.name("two")
    first = create_topic(session, one, 2)
    create_topic(session, two, 3)
    for authorized in (False, True):
        session.ask_each(
            "Metadata",
            topics=[{"name": two}, {"name": one}, {"name": session.name("none")}],
            include_topic_authorized_operations=authorized,
            allow_auto_topic_creation=False,
        )
        session.ask_each(
            "Metadata",
            topics=[{"name": two}, {"name": one}],
            include_topic_authorized_operations=authorized,
            include_cluster_authorized_operations=authorized,
        )
    session.ask_each("Metadata", topics=[{"name": None, "topic_id": first}], note="by id")
    session.ask_each("Metadata", topics=[{"name": None, "topic_id": UNKNOWN_ID}], note="by unknown id")
    session.ask_each(
        "Metadata", topics=[{"name": one, "topic_id": first}], note="by name and id", allow_auto_topic_creation=False
    )
    session.ask_each("Metadata", topics=[{"name": one}, {"name": one}], note="named twice")
    session.ask_each("Metadata", topics=[{"name": None}], note="neither name nor id")
    session.ask_versions("Metadata", lambda version: {"topics": [] if version else [{"name": one}]}, note="no topics")
    session.ask("DescribeTopicPartitions", topics=[{"name": two}, {"name": one}, {"name": session.name("none")}])
    session.ask("DescribeTopicPartitions", topics=[{"name": one}, {"name": one}], note="named twice")
    session.ask(
        "DescribeTopicPartitions",
        topics=[{"name": one}, {"name": two}],
        cursor={"topic_name": two, "partition_index": 1},
    )
    session.ask(
        "DescribeTopicPartitions",
        topics=[{"name": one}, {"name": two}],
        cursor={"topic_name": one, "partition_index": 9},
    )
    session.ask(
        "DescribeTopicPartitions",
        topics=[{"name": one}],
        cursor={"topic_name": one, "partition_index": -1},
        note="a negative cursor",
    )


def automatic_creation(session: Session) -> None:
    for version in session.versions("Metadata"):
        topic = session.name(f"auto-{version}")
        session.ask("Metadata", version=version, topics=[{"name": topic}], note="first", retry=False)
        session.wait_for(lambda answer: answer.topics[0].error_code == 0, "Metadata", topics=[{"name": topic}])
        session.ask("Metadata", version=version, topics=[{"name": topic}], note="then")
    for name in ("bad/name", "", "."):
        session.ask("Metadata", topics=[{"name": name}], note=f"name {name!r}", retry=False)


def growth(session: Session) -> None:
    topic = session.name("grows")
    create_topic(session, topic, 2)
    for note, fields in (
        ("same count", {"count": 2, "assignments": None}),
        ("fewer", {"count": 1, "assignments": None}),
        ("negative", {"count": -1, "assignments": None}),
        ("empty assignment", {"count": 3, "assignments": []}),
        ("to a stranger", {"count": 3, "assignments": [{"broker_ids": [77]}]}),
        ("to nobody", {"count": 3, "assignments": [{"broker_ids": []}]}),
        ("two replicas", {"count": 3, "assignments": [{"broker_ids": [1, 1]}]}),
        ("too many assignments", {"count": 3, "assignments": [{"broker_ids": [1]}, {"broker_ids": [1]}]}),
        ("too few assignments", {"count": 4, "assignments": [{"broker_ids": [1]}]}),
    ):
        session.ask_each("CreatePartitions", topics=[{"name": topic, **fields}], timeout_ms=5000, note=note)
    session.ask_each(
        "CreatePartitions", topics=[{"name": session.name("none"), "count": 3, "assignments": None}], timeout_ms=5000
    )
    one = {"name": topic, "count": 9, "assignments": None}
    session.ask_each("CreatePartitions", topics=[one, one], timeout_ms=5000, note="named twice")
    session.ask_each("CreatePartitions", topics=[one], timeout_ms=5000, validate_only=True, note="only validated")
    session.ask_versions(
        "CreatePartitions",
        lambda version: {"topics": [{"name": topic, "count": 3 + version, "assignments": None}], "timeout_ms": 5000},
    )
    session.ask(
        "CreatePartitions",
        topics=[{"name": topic, "count": 7, "assignments": [{"broker_ids": [1]}]}],
        timeout_ms=5000,
        note="assigned",
    )
    session.wait_for(lambda answer: len(answer.topics[0].partitions) == 7, "Metadata", topics=[{"name": topic}])
    session.ask("Metadata", topics=[{"name": topic}])


def deletion(session: Session) -> None:
    for version in session.versions("DeleteTopics"):
        topic = session.name(f"gone-{version}")
        topic_id = create_topic(session, topic)
        by_name = {"topic_names": [topic]} if version < 6 else {"topics": [{"name": topic}]}
        session.ask("DeleteTopics", version=version, timeout_ms=5000, **by_name)
        session.ask("DeleteTopics", version=version, timeout_ms=5000, note="again", **by_name)
        gone = {"topics": [{"name": None, "topic_id": topic_id}]}
        session.wait_for(lambda answer: answer.topics[0].error_code != 0, "Metadata", **gone)
        session.ask("Metadata", **gone, note="by the id of a deleted topic")
    topic = session.name("by-id")
    topic_id = create_topic(session, topic)
    for note, topics in (
        ("unknown id", [{"topic_id": UNKNOWN_ID}]),
        ("name and id", [{"name": topic, "topic_id": topic_id}]),
        ("neither", [{}]),
        ("both forms", [{"name": topic}, {"topic_id": topic_id}]),
        ("twice", [{"name": topic}, {"name": topic}]),
        ("by id", [{"topic_id": topic_id}]),
        ("unknown name", [{"name": session.name("none")}]),
        ("bad name", [{"name": "bad/name"}]),
        ("none", []),
    ):
        session.ask("DeleteTopics", topics=topics, timeout_ms=5000, note=note)
