"""Groups of the newer protocol (KIP-848): heartbeats, descriptions, and commits of their members."""

import time
from typing import Any

from differential.scripts.classic_groups import describe, join_fields
from differential.scripts.committed_offsets import commit_topic, fetch_fields
from differential.scripts.common import UNKNOWN_ID, create_topic
from differential.session import RETRY_PAUSE_SECONDS, RETRY_SECONDS_MAX, Session


def beat(session: Session, note: str, group: str, member_id: str, epoch: int, **more: Any) -> Any:
    return session.ask(
        "ConsumerGroupHeartbeat", group_id=group, member_id=member_id, member_epoch=epoch, note=note, **more
    )


def joining(topic: str, **more: Any) -> dict[str, Any]:
    return {"rebalance_timeout_ms": 10_000, "subscribed_topic_names": [topic], "topic_partitions": [], **more}


def subscribable(session: Session, topic: str, partitions: int = 1) -> bytes:
    """Create a topic, and wait until group coordinators know it: they learn of topics a moment after brokers do."""
    topic_id = create_topic(session, topic, partitions)
    member: dict[str, Any] = {"group_id": session.name(f"probe-{topic}"), "member_id": "probe"}
    answer = session.look("ConsumerGroupHeartbeat", **member, **joining(topic))
    deadline = time.monotonic() + RETRY_SECONDS_MAX
    while not (answer.assignment and answer.assignment.topic_partitions) and time.monotonic() < deadline:
        time.sleep(RETRY_PAUSE_SECONDS)
        answer = session.look("ConsumerGroupHeartbeat", **member, member_epoch=answer.member_epoch)
    session.look("ConsumerGroupHeartbeat", **member, member_epoch=-1)
    return topic_id


def life(session: Session) -> None:
    topic, group = session.name("topic"), session.name("group")
    topic_id = subscribable(session, topic, 2)
    beat(session, "joins", group, "m1", 0, **joining(topic))
    describe(session, group, "one member")
    session.ask_each("ConsumerGroupDescribe", group_ids=[group], include_authorized_operations=True)
    owned = [{"topic_id": topic_id, "partitions": [0, 1]}]
    beat(session, "owns its partitions", group, "m1", 1, topic_partitions=owned)
    beat(session, "an idle heartbeat", group, "m1", 1)
    beat(session, "an old epoch", group, "m1", 0)
    beat(session, "a new epoch", group, "m1", 5)
    beat(session, "an epoch below -2", group, "m1", -5)
    beat(session, "a stranger", group, "m9", 1)
    for version in session.versions("OffsetCommit"):
        for epoch in (1, 0, 9):
            session.ask(
                "OffsetCommit",
                version=version,
                group_id=group,
                member_id="m1",
                generation_id_or_member_epoch=epoch,
                topics=[commit_topic(topic, topic_id, 0)],
                note=f"epoch {epoch}",
            )
    session.ask("OffsetCommit", group_id=group, topics=[commit_topic(topic, topic_id, 0)], note="from outside")
    for epoch in (1, 0, 9):
        session.ask(
            "OffsetFetch",
            groups=[{"group_id": group, "member_id": "m1", "member_epoch": epoch, "topics": None}],
            note=f"epoch {epoch}",
        )
    session.ask("OffsetFetch", version=7, **fetch_fields(7, group, None))
    session.ask(
        "OffsetDelete",
        group_id=group,
        topics=[{"name": topic, "partitions": [{"partition_index": 0}]}],
        note="a topic that is subscribed to",
    )
    session.ask("DeleteGroups", groups_names=[group], note="with a member")
    beat(session, "a second joins", group, "m2", 0, **joining(topic))
    session.ask("ConsumerGroupDescribe", group_ids=[group], note="a second has joined")
    beat(session, "the first must give up one", group, "m1", 1)
    beat(session, "the first gave up one", group, "m1", 1, topic_partitions=[{"topic_id": topic_id, "partitions": [0]}])
    beat(session, "the second gets it", group, "m2", 2)
    session.ask("ConsumerGroupDescribe", group_ids=[group], note="balanced")
    beat(session, "the second subscribes to nothing", group, "m2", 2, subscribed_topic_names=[])
    beat(session, "the second leaves", group, "m2", -1)
    beat(session, "the second leaves again", group, "m2", -1)
    beat(session, "the first leaves", group, "m1", -1)
    session.ask("ConsumerGroupDescribe", group_ids=[group], note="empty")
    describe(session, group, "empty")
    session.ask("DeleteGroups", groups_names=[group], note="empty")
    session.ask("ConsumerGroupDescribe", group_ids=[group], note="deleted")


def wrong_heartbeats(session: Session) -> None:
    topic, group = session.name("topic"), session.name("group")
    subscribable(session, topic)
    good: dict[str, Any] = {"group_id": group, "member_id": "m", "member_epoch": 0, **joining(topic)}
    for note, fields in {
        "no group": {"group_id": ""},
        "a blank group": {"group_id": " "},
        "no member": {"member_id": ""},
        "no rebalance timeout": {"rebalance_timeout_ms": -1},
        "no subscription": {"subscribed_topic_names": None},
        "an empty subscription": {"subscribed_topic_names": []},
        "an empty topic name": {"subscribed_topic_names": [""]},
        "partitions while joining": {"topic_partitions": [{"topic_id": UNKNOWN_ID, "partitions": [0]}]},
        "no partitions while joining": {"topic_partitions": None},
        "an unknown assignor": {"server_assignor": "roundrobin"},
        "the range assignor": {"server_assignor": "range", "member_id": "r", "group_id": group + "-range"},
        "an empty instance": {"instance_id": ""},
        "an empty rack": {"rack_id": ""},
        "a bad pattern": {"subscribed_topic_names": None, "subscribed_topic_regex": "("},
        "an empty pattern": {"subscribed_topic_names": None, "subscribed_topic_regex": ""},
        "an epoch without joining": {"member_epoch": 3},
        "leaves without joining": {"member_epoch": -1},
        "a static member leaves without joining": {"member_epoch": -2, "instance_id": "i"},
        "-2 without an instance": {"member_epoch": -2},
        "a long member id": {"member_id": "x" * 40},
    }.items():
        session.ask_each("ConsumerGroupHeartbeat", **{**good, **fields}, note=note)
    session.ask_each(
        "ConsumerGroupDescribe",
        group_ids=[session.name("none"), ""],
        include_authorized_operations=True,
        note="unknown",
    )
    session.ask_each("ConsumerGroupDescribe", group_ids=[], note="nothing")


def static_members(session: Session) -> None:
    topic, group = session.name("topic"), session.name("group")
    subscribable(session, topic, 2)
    beat(session, "joins", group, "m1", 0, **joining(topic, instance_id="i"))
    beat(session, "another with the same instance", group, "m2", 0, **joining(topic, instance_id="i"))
    beat(session, "goes for a while", group, "m1", -2, instance_id="i")
    session.ask("ConsumerGroupDescribe", group_ids=[group], note="gone for a while")
    beat(session, "comes back with another id", group, "m3", 0, **joining(topic, instance_id="i"))
    beat(session, "the old id", group, "m1", 1, instance_id="i")
    beat(session, "an unknown instance", group, "m3", 1, instance_id="j")
    session.ask("ConsumerGroupDescribe", group_ids=[group], note="back")
    session.ask(
        "LeaveGroup",
        group_id=group,
        members=[{"member_id": "", "group_instance_id": "i"}],
        note="removed by an administrator",
    )
    session.ask("ConsumerGroupDescribe", group_ids=[group], note="removed")


def patterns(session: Session) -> None:
    """A pattern is resolved in the background: the member is heard until it has its partitions."""
    topic, group = session.name("topic"), session.name("group")
    subscribable(session, topic, 2)
    member: dict[str, Any] = {"group_id": group, "member_id": "m1"}
    joined = {
        "rebalance_timeout_ms": 10_000,
        "topic_partitions": [],
        "subscribed_topic_regex": f"{session.prefix}-top.*",
    }
    answer = session.look("ConsumerGroupHeartbeat", **member, **joined)
    deadline = time.monotonic() + RETRY_SECONDS_MAX
    while not (answer.assignment and answer.assignment.topic_partitions) and time.monotonic() < deadline:
        time.sleep(RETRY_PAUSE_SECONDS)
        answer = session.look("ConsumerGroupHeartbeat", **member, member_epoch=answer.member_epoch)
    session.ask("ConsumerGroupDescribe", group_ids=[group])
    beat(session, "leaves", group, "m1", -1)


def mixed_protocols(session: Session) -> None:
    """Classic requests to a group of the newer protocol, and the reverse."""
    topic, group = session.name("topic"), session.name("group")
    topic_id = subscribable(session, topic)
    beat(session, "joins", group, "m1", 0, **joining(topic))
    session.ask("JoinGroup", **join_fields(group, protocol_type="connect"), note="a classic member of another type")
    session.ask("Heartbeat", group_id=group, generation_id=1, member_id="m1", note="a classic heartbeat")
    session.ask("SyncGroup", group_id=group, generation_id=1, member_id="m1", note="a classic sync")
    session.ask("LeaveGroup", group_id=group, members=[{"member_id": "m1"}], note="a classic leave")
    session.ask("DescribeGroups", groups=[group], note="a classic description")
    classic = session.name("classic")
    member_id = session.look("JoinGroup", **join_fields(classic, protocol_type="connect")).member_id
    joined = session.look("JoinGroup", **join_fields(classic, member_id, protocol_type="connect"))
    beat(session, "a newer member of a classic group", classic, "m1", 0, **joining(topic))
    session.ask("ConsumerGroupDescribe", group_ids=[classic], note="a newer description")
    session.ask(
        "OffsetCommit",
        group_id=classic,
        member_id=member_id,
        generation_id_or_member_epoch=joined.generation_id,
        topics=[commit_topic(topic, topic_id, 0)],
        note="in the newest version",
    )
    session.look("LeaveGroup", group_id=classic, members=[{"member_id": member_id}])
    beat(session, "a newer member of an empty classic group", classic, "m1", 0, **joining(topic))
    session.ask("ConsumerGroupDescribe", group_ids=[classic], note="after the change")
    beat(session, "leaves", classic, "m1", -1)
