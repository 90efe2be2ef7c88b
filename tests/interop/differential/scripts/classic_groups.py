"""Groups of the classic protocol, with dynamic and static members: JoinGroup to LeaveGroup, descriptions, listings."""

from typing import Any

from differential.scripts.common import create_topic
from differential.session import Session
from sskafka.wire.codec import encode
from sskafka.wire.messages.consumer_protocol import ConsumerProtocolSubscription

SUBSCRIPTION = (1).to_bytes(2, "big") + encode(ConsumerProtocolSubscription(topics=["orders"]), 1)


def join_fields(group: str, member_id: str = "", **more: Any) -> dict[str, Any]:
    protocols = [{"name": "range", "metadata": SUBSCRIPTION}]
    return {
        "group_id": group,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": protocols,
        **more,
    }


def describe(session: Session, group: str, note: str) -> None:
    session.ask("DescribeGroups", groups=[group], include_authorized_operations=True, note=note)
    listed = session.look("ListGroups")
    listed.groups = [one for one in listed.groups if one.group_id == group]
    session.record("ListGroups", session.versions("ListGroups")[-1], note, None, listed)


def alone(session: Session) -> None:
    """One member goes through a life, in each version of JoinGroup."""
    for version in session.versions("JoinGroup"):
        group = session.name(f"v{version}")
        joined = session.ask("JoinGroup", version=version, **join_fields(group), note="joins")
        if joined.error_code:
            joined = session.ask(
                "JoinGroup", version=version, **join_fields(group, joined.member_id), note="joins with its id"
            )
        member: dict[str, Any] = {
            "group_id": group,
            "member_id": joined.member_id,
            "generation_id": joined.generation_id,
        }
        describe(session, group, "before SyncGroup")
        session.ask("Heartbeat", **member, note="before SyncGroup")
        assignments = [{"member_id": joined.member_id, "assignment": b"mine"}]
        session.ask_each("SyncGroup", **member, assignments=assignments, note="without protocol")
        session.ask_each("SyncGroup", **member, protocol_type="consumer", protocol_name="range", note="again")
        session.ask("SyncGroup", **member, protocol_type="other", protocol_name="range", note="another type")
        session.ask("SyncGroup", **member, protocol_type="consumer", protocol_name="other", note="another protocol")
        session.ask("SyncGroup", **{**member, "generation_id": 9}, note="another generation")
        describe(session, group, "stable")
        session.ask_each("Heartbeat", **member)
        session.ask("Heartbeat", **{**member, "generation_id": 9}, note="another generation")
        session.ask("Heartbeat", **{**member, "member_id": "stranger"}, note="another member")
        session.ask("Heartbeat", **{**member, "group_id": ""}, note="no group")
        session.ask("DeleteGroups", groups_names=[group], note="while it has a member")
        session.ask(
            "LeaveGroup",
            group_id=group,
            members=[{"member_id": joined.member_id}, {"member_id": "stranger"}],
            note="leaves",
        )
        session.ask("LeaveGroup", group_id=group, members=[{"member_id": joined.member_id}], note="again")
        describe(session, group, "empty")
        session.ask_each("DeleteGroups", groups_names=[group], note="empty")
        describe(session, group, "deleted")


def wrong_joins(session: Session) -> None:
    for number, (note, fields) in enumerate(
        {
            "no group id": {"group_id": ""},
            "a session that is too short": {"session_timeout_ms": 1},
            "a session that is too long": {"session_timeout_ms": 100_000_000},
            "no protocols": {"protocols": []},
            "no protocol type": {"protocol_type": ""},
            "an unknown member": {"member_id": "stranger"},
            "an unknown static member": {"member_id": "stranger", "group_instance_id": "x"},
            "an empty instance": {"group_instance_id": ""},
            "a bad instance": {"group_instance_id": "bad/instance"},
            "an instance of dots": {"group_instance_id": ".."},
            "a long instance": {"group_instance_id": "x" * 30},
        }.items()
    ):
        session.ask_versions(
            "JoinGroup",
            lambda version, n=number, f=fields: {**join_fields(session.name(f"{n}-{version}")), **f},
            note=note,
        )
    for name in (session.name("none"), ""):
        session.ask_each("Heartbeat", group_id=name, generation_id=1, member_id="m", note=f"group {name!r}")
        session.ask_each("SyncGroup", group_id=name, generation_id=1, member_id="m", note=f"group {name!r}")
        session.ask_versions(
            "LeaveGroup",
            lambda version, n=name: {
                "group_id": n,
                **({"member_id": "m"} if version < 3 else {"members": [{"member_id": "m"}]}),
            },
            note=f"group {name!r}",
        )
        session.ask_each("DescribeGroups", groups=[name], note=f"group {name!r}")
        session.ask_each("DescribeGroups", groups=[name], include_authorized_operations=True, note=f"group {name!r}")
        session.ask_each("DeleteGroups", groups_names=[name], note=f"group {name!r}")
    session.ask_each("DescribeGroups", groups=[], note="nothing")
    session.ask_each("DeleteGroups", groups_names=[], note="nothing")
    session.ask("DeleteGroups", groups_names=["x", "x"], note="twice")


def two_members(session: Session) -> None:
    group = session.name("two")
    first_id = session.look("JoinGroup", **join_fields(group)).member_id
    first = session.ask("JoinGroup", **join_fields(group, first_id), note="the first")
    session.ask(
        "SyncGroup",
        group_id=group,
        generation_id=first.generation_id,
        member_id=first_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[{"member_id": first_id, "assignment": b"all"}],
    )
    second_id = session.look("JoinGroup", on="1b", **join_fields(group)).member_id
    waiting = session.begin("JoinGroup", on="1b", note="the second", **join_fields(group, second_id))
    session.wait_for(
        lambda answer: answer.groups[0].group_state == "PreparingRebalance", "DescribeGroups", groups=[group]
    )
    describe(session, group, "rebalancing")
    session.ask(
        "Heartbeat", group_id=group, generation_id=first.generation_id, member_id=first_id, note="while rebalancing"
    )
    session.ask(
        "SyncGroup", group_id=group, generation_id=first.generation_id, member_id=first_id, note="while rebalancing"
    )
    session.ask(
        "OffsetCommit",
        group_id=group,
        generation_id_or_member_epoch=first.generation_id,
        member_id=first_id,
        version=9,
        topics=[{"name": session.name("none"), "partitions": [{"partition_index": 0, "committed_offset": 1}]}],
        note="while rebalancing",
    )
    again = session.ask("JoinGroup", note="the first again", **join_fields(group, first_id))
    joined = waiting.finish()
    member = {
        "group_id": group,
        "generation_id": joined.generation_id,
        "protocol_type": "consumer",
        "protocol_name": "range",
    }
    syncing = session.begin("SyncGroup", on="1b", member_id=second_id, note="the second waits", **member)
    session.ask(
        "SyncGroup",
        member_id=again.member_id,
        note="the leader",
        **member,
        assignments=[{"member_id": first_id, "assignment": b"one"}, {"member_id": second_id, "assignment": b"two"}],
    )
    syncing.finish()
    describe(session, group, "stable")
    session.ask(
        "JoinGroup",
        **join_fields(group, first_id, protocols=[{"name": "other", "metadata": b""}]),
        note="no protocol in common",
    )
    session.ask("JoinGroup", **join_fields(group, first_id, protocol_type="connect"), note="another protocol type")
    session.ask("LeaveGroup", group_id=group, members=[{"member_id": first_id}, {"member_id": second_id}])
    describe(session, group, "empty")


def static_members(session: Session) -> None:
    group = session.name("static")
    joined = session.ask("JoinGroup", **join_fields(group, group_instance_id="one"), note="joins")
    member: dict[str, Any] = {
        "group_id": group,
        "generation_id": joined.generation_id,
        "protocol_type": "consumer",
        "protocol_name": "range",
    }
    session.ask(
        "SyncGroup",
        member_id=joined.member_id,
        group_instance_id="one",
        assignments=[{"member_id": joined.member_id, "assignment": b"all"}],
        **member,
    )
    describe(session, group, "stable")
    again = session.ask("JoinGroup", **join_fields(group, group_instance_id="one"), note="comes back")
    describe(session, group, "came back")
    for note, member_id in (("the old id", joined.member_id), ("the new id", again.member_id), ("no id", "")):
        session.ask(
            "Heartbeat",
            group_id=group,
            generation_id=again.generation_id,
            member_id=member_id,
            group_instance_id="one",
            note=note,
        )
        session.ask(
            "SyncGroup",
            member_id=member_id,
            group_instance_id="one",
            note=note,
            **{**member, "generation_id": again.generation_id},
        )
        session.ask(
            "OffsetCommit",
            version=9,
            group_id=group,
            generation_id_or_member_epoch=again.generation_id,
            member_id=member_id,
            group_instance_id="one",
            topics=[],
            note=note,
        )
        session.ask(
            "JoinGroup", **join_fields(group, member_id, group_instance_id="one"), note=note
        ) if note == "the old id" else None
    session.ask(
        "Heartbeat",
        group_id=group,
        generation_id=again.generation_id,
        member_id=again.member_id,
        group_instance_id="two",
        note="an unknown instance",
    )
    session.ask(
        "LeaveGroup",
        group_id=group,
        members=[{"member_id": joined.member_id, "group_instance_id": "one"}],
        note="with the old id",
    )
    session.ask(
        "LeaveGroup", group_id=group, members=[{"member_id": "", "group_instance_id": "one"}], note="by instance"
    )
    session.ask("LeaveGroup", group_id=group, members=[{"member_id": "", "group_instance_id": "one"}], note="again")
    describe(session, group, "empty")


def other_protocol_types(session: Session) -> None:
    group = session.name("connect")
    fields = join_fields(
        group,
        protocol_type="connect",
        protocols=[{"name": "default", "metadata": b"\x01"}, {"name": "sessioned", "metadata": b"\x02"}],
    )
    member_id = session.ask("JoinGroup", **fields).member_id
    joined = session.ask("JoinGroup", **{**fields, "member_id": member_id})
    session.ask(
        "SyncGroup",
        group_id=group,
        member_id=member_id,
        generation_id=joined.generation_id,
        protocol_type="connect",
        protocol_name="default",
        assignments=[{"member_id": member_id, "assignment": b"tasks"}],
    )
    describe(session, group, "stable")
    session.ask("ConsumerGroupDescribe", group_ids=[group])
    session.ask(
        "OffsetDelete", group_id=group, topics=[{"name": session.name("none"), "partitions": [{"partition_index": 0}]}]
    )
    session.ask("LeaveGroup", group_id=group, members=[{"member_id": member_id}])


def listing(session: Session) -> None:
    group = session.name("listed")
    topic = session.name("topic")
    create_topic(session, topic)
    session.look(
        "OffsetCommit",
        version=9,
        group_id=group,
        topics=[{"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 1}]}],
    )
    for states in ([], ["Empty"], ["empty"], ["Stable"], ["Nonsense"]):
        for types in ([], ["classic"], ["Classic"], ["consumer"], ["nonsense"]):
            for version in session.versions("ListGroups"):
                fields = {"states_filter": states, "types_filter": types}
                if (states and version < 4) or (types and version < 5):
                    continue
                listed = session.look("ListGroups", version=version, **fields)
                listed.groups = [one for one in listed.groups if one.group_id == group]
                session.record("ListGroups", version, f"states {states}, types {types}", None, listed)
