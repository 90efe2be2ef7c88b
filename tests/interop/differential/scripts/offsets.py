"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords."""

from differential.scripts.batches import TIMESTAMP_MS
from differential.scripts.common import create_topic
from differential.scripts.fetch import filled
from differential.session import Session

TIMESTAMPS = (-1, -2, -3, -4, -5, -6, -7, 0, TIMESTAMP_MS, TIMESTAMP_MS + 1, TIMESTAMP_MS + 1000, TIMESTAMP_MS + 1001)


def by_timestamp(session: Session) -> None:
    topic, _ = filled(session, "filled")
    empty = session.name("empty")
    create_topic(session, empty)
    for name in (topic, empty):
        for timestamp in TIMESTAMPS:
            session.ask_each(
                "ListOffsets",
                replica_id=-1,
                timeout_ms=5000,
                note=f"timestamp {timestamp}",
                topics=[{"name": name, "partitions": [{"partition_index": 0, "timestamp": timestamp}]}],
            )
    for epoch in (0, 1, 9, -2):
        session.ask_each(
            "ListOffsets",
            replica_id=-1,
            timeout_ms=5000,
            note=f"leader epoch {epoch}",
            topics=[
                {"name": topic, "partitions": [{"partition_index": 0, "timestamp": -1, "current_leader_epoch": epoch}]}
            ],
        )
    for replica in (1, 77, -2, -3):
        session.ask_each(
            "ListOffsets",
            replica_id=replica,
            timeout_ms=5000,
            note=f"as replica {replica}",
            topics=[{"name": topic, "partitions": [{"partition_index": 0, "timestamp": -1}]}],
        )
    for isolation in (0, 1, 5):
        session.ask_each(
            "ListOffsets",
            replica_id=-1,
            isolation_level=isolation,
            timeout_ms=5000,
            note=f"isolation {isolation}",
            topics=[
                {
                    "name": topic,
                    "partitions": [{"partition_index": 0, "timestamp": -1}, {"partition_index": 0, "timestamp": -2}],
                }
            ],
        )
    session.ask_each(
        "ListOffsets",
        replica_id=-1,
        timeout_ms=5000,
        note="unknown",
        topics=[
            {
                "name": topic,
                "partitions": [{"partition_index": 8, "timestamp": -1}, {"partition_index": -1, "timestamp": -1}],
            },
            {"name": session.name("none"), "partitions": [{"partition_index": 0, "timestamp": -1}]},
            {"name": "bad/name", "partitions": [{"partition_index": 0, "timestamp": -1}]},
        ],
    )
    session.ask_each("ListOffsets", replica_id=-1, topics=[], note="nothing")


def leader_epochs(session: Session) -> None:
    topic, _ = filled(session, "epochs")
    for leader_epoch in (-1, 0, 1, 9, -5):
        for current in (-1, 0, 3):
            session.ask_each(
                "OffsetForLeaderEpoch",
                replica_id=-1,
                note=f"epoch {leader_epoch} at {current}",
                topics=[
                    {
                        "topic": topic,
                        "partitions": [{"partition": 0, "leader_epoch": leader_epoch, "current_leader_epoch": current}],
                    }
                ],
            )
    session.ask_each(
        "OffsetForLeaderEpoch",
        replica_id=-1,
        note="unknown",
        topics=[
            {"topic": topic, "partitions": [{"partition": 8, "leader_epoch": 0}]},
            {"topic": session.name("none"), "partitions": [{"partition": 0, "leader_epoch": 0}]},
        ],
    )


def deleted_records(session: Session) -> None:
    topic, _ = filled(session, "deleted")
    for offset in (0, 3, 1, 11, -2, -5, 4, -1, -1):
        session.ask_each(
            "DeleteRecords",
            timeout_ms=5000,
            note=f"up to {offset}",
            topics=[{"name": topic, "partitions": [{"partition_index": 0, "offset": offset}]}],
        )
        session.ask(
            "ListOffsets",
            replica_id=-1,
            timeout_ms=5000,
            topics=[{"name": topic, "partitions": [{"partition_index": 0, "timestamp": -2}]}],
        )
    session.ask_each(
        "DeleteRecords",
        timeout_ms=5000,
        note="unknown",
        topics=[
            {"name": topic, "partitions": [{"partition_index": 8, "offset": 0}]},
            {"name": session.name("none"), "partitions": [{"partition_index": 0, "offset": 0}]},
        ],
    )
    session.ask_each("DeleteRecords", timeout_ms=5000, topics=[], note="nothing")
    compacted = session.name("compacted")
    create_topic(session, compacted, cleanup_policy="compact")
    session.ask_each(
        "DeleteRecords",
        timeout_ms=5000,
        note="a compacted topic",
        topics=[{"name": compacted, "partitions": [{"partition_index": 0, "offset": 0}]}],
    )
    session.ask_each(
        "DeleteRecords",
        timeout_ms=5000,
        note="an internal topic",
        topics=[{"name": "__consumer_offsets", "partitions": [{"partition_index": 0, "offset": 0}]}],
    )
