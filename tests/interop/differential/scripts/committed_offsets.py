"""OffsetCommit, OffsetFetch, OffsetDelete of groups without members, in every version."""

from typing import Any

from differential.scripts.common import UNKNOWN_ID, create_topic
from differential.session import Session


def commit_topic(topic: str, topic_id: bytes, *partitions: int, offset: int = 5, **more: Any) -> dict[str, Any]:
    return {
        "name": topic,
        "topic_id": topic_id,
        "partitions": [{"partition_index": one, "committed_offset": offset, **more} for one in partitions],
    }


def fetch_fields(version: int, group: str, topics: list[tuple[str, bytes, list[int]]] | None) -> dict[str, Any]:
    if version < 8:
        return {
            "group_id": group,
            "topics": None if topics is None else [{"name": name, "partition_indexes": ps} for name, _, ps in topics],
        }
    wanted = (
        None
        if topics is None
        else [{"name": name, "topic_id": topic_id, "partition_indexes": ps} for name, topic_id, ps in topics]
    )
    return {"groups": [{"group_id": group, "topics": wanted}]}


def simple_commits(session: Session) -> None:
    topic = session.name("topic")
    topic_id = create_topic(session, topic, 2)
    none = session.name("none")
    group = session.name("group")
    session.ask_versions(
        "OffsetCommit",
        lambda version: {"group_id": f"{group}-{version}", "topics": [commit_topic(topic, topic_id, 0, 1)]},
        note="plain",
    )
    for note, fields in {
        "no group": {"group_id": "", "topics": [commit_topic(topic, topic_id, 0)]},
        "an unknown topic": {"group_id": group, "topics": [commit_topic(none, UNKNOWN_ID, 0)]},
        "an unknown partition": {"group_id": group, "topics": [commit_topic(topic, topic_id, 0, 7, -1)]},
        "a bad name": {"group_id": group, "topics": [commit_topic("bad/name", bytes(16), 0)]},
        "a negative offset": {"group_id": group, "topics": [commit_topic(topic, topic_id, 0, offset=-1)]},
        "an offset below -1": {"group_id": group, "topics": [commit_topic(topic, topic_id, 0, offset=-5)]},
        "metadata": {
            "group_id": group,
            "topics": [commit_topic(topic, topic_id, 0, committed_metadata="here", committed_leader_epoch=3)],
        },
        "no metadata": {"group_id": group, "topics": [commit_topic(topic, topic_id, 1, committed_metadata=None)]},
        "too much metadata": {
            "group_id": group,
            "topics": [commit_topic(topic, topic_id, 1, committed_metadata="x" * 5000)],
        },
        "a generation": {
            "group_id": group,
            "generation_id_or_member_epoch": 3,
            "topics": [commit_topic(topic, topic_id, 0)],
        },
        "a member": {"group_id": group, "member_id": "stranger", "topics": [commit_topic(topic, topic_id, 0)]},
        "a member and generation": {
            "group_id": group,
            "member_id": "stranger",
            "generation_id_or_member_epoch": 1,
            "topics": [commit_topic(topic, topic_id, 0)],
        },
        "an instance": {"group_id": group, "group_instance_id": "one", "topics": [commit_topic(topic, topic_id, 0)]},
        "a retention time": {
            "group_id": group,
            "retention_time_ms": 1000,
            "topics": [commit_topic(topic, topic_id, 0)],
        },
        "no topics": {"group_id": group, "topics": []},
        "no partitions": {"group_id": group, "topics": [commit_topic(topic, topic_id)]},
        "a partition twice": {"group_id": group, "topics": [commit_topic(topic, topic_id, 0, 0)]},
        "a new group with a generation": {
            "group_id": group + "-new",
            "generation_id_or_member_epoch": 3,
            "topics": [commit_topic(topic, topic_id, 0)],
        },
        "a new group with a member": {
            "group_id": group + "-new",
            "member_id": "m",
            "generation_id_or_member_epoch": 3,
            "topics": [commit_topic(topic, topic_id, 0)],
        },
    }.items():
        session.ask_each("OffsetCommit", **fields, note=note)
    fetched(session, topic, topic_id, group)
    fetched(session, topic, topic_id, session.name("unheard"))
    fetched(session, topic, topic_id, "")
    session.look("DeleteGroups", groups_names=[""])  # other scripts ask about this group too


def fetched(session: Session, topic: str, topic_id: bytes, group: str) -> None:
    for note, topics in {
        "all": None,
        "none": [],
        "some": [(topic, topic_id, [1, 0])],
        "unknown": [(topic, topic_id, [0, 9]), (session.name("none"), UNKNOWN_ID, [0])],
        "no partitions": [(topic, topic_id, [])],
    }.items():
        for stable in (False, True):
            session.ask_versions(
                "OffsetFetch",
                lambda version, t=topics, s=stable: {**fetch_fields(version, group, t), "require_stable": s},
                note=f"{note} of {group!r}, stable {stable}",
            )


def several_groups(session: Session) -> None:
    topic = session.name("topic")
    topic_id = create_topic(session, topic)
    for number in range(3):
        session.look(
            "OffsetCommit",
            version=9,
            group_id=session.name(str(number)),
            topics=[commit_topic(topic, topic_id, 0, offset=number)],
        )
    groups: list[dict[str, Any]] = [{"group_id": session.name(str(number)), "topics": None} for number in range(4)]
    session.ask_each("OffsetFetch", groups=groups)
    session.ask_each("OffsetFetch", groups=groups + groups, note="twice")
    session.ask_each("OffsetFetch", groups=[], note="nothing")
    session.ask_each("OffsetFetch", groups=[{**groups[0], "member_id": "m", "member_epoch": 1}], note="as a member")


def deletion(session: Session) -> None:
    topic, group = session.name("topic"), session.name("group")
    topic_id = create_topic(session, topic, 2)
    session.look("OffsetCommit", version=9, group_id=group, topics=[commit_topic(topic, topic_id, 0, 1)])

    def delete(note: str, name: str, *topics: tuple[str, list[int]]) -> None:
        wanted = [{"name": one, "partitions": [{"partition_index": p} for p in ps]} for one, ps in topics]
        session.ask("OffsetDelete", group_id=name, topics=wanted, note=note)

    delete("one", group, (topic, [0]))
    delete("again", group, (topic, [0, 9]))
    delete("unknown topic", group, (session.name("none"), [0]))
    delete("unknown group", session.name("unheard"), (topic, [0]))
    delete("no group", "", (topic, [0]))
    delete("nothing", group)
    delete("no partitions", group, (topic, []))
    delete("the other", group, (topic, [1]))
    session.ask("OffsetFetch", **fetch_fields(10, group, None))
    session.ask("DescribeGroups", groups=[group], note="without offsets")


def deleted_topic(session: Session) -> None:
    topic, group = session.name("topic"), session.name("group")
    topic_id = create_topic(session, topic)
    session.look("OffsetCommit", version=9, group_id=group, topics=[commit_topic(topic, topic_id, 0)])
    session.look("DeleteTopics", topics=[{"name": topic}], timeout_ms=5000)
    session.wait_for(
        lambda answer: not answer.topics[0].partitions[0].committed_offset >= 0,
        "OffsetFetch",
        version=7,
        group_id=group,
        topics=[{"name": topic, "partition_indexes": [0]}],
    )
    session.ask_versions("OffsetFetch", lambda version: fetch_fields(version, group, None), note="all")
    session.ask_versions(
        "OffsetFetch", lambda version: fetch_fields(version, group, [(topic, topic_id, [0])]), note="its topic"
    )
