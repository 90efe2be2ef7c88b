"""Three brokers: replicas move, leaders are elected, followers answer.

Broker 1 is asked unless a script says otherwise.
"""

from typing import Any

from differential.scripts.batches import batch
from differential.scripts.common import caught_up, fill, produce_fields
from differential.scripts.fetch import fetch_fields
from differential.session import Session


def placed(session: Session, word: str, *partitions: list[int], **configs: str) -> tuple[str, bytes]:
    """A topic whose partitions have the given replicas, once all of them are in sync."""
    name = session.name(word)
    session.look(
        "CreateTopics",
        topics=[
            {
                "name": name,
                "num_partitions": -1,
                "replication_factor": -1,
                "assignments": [
                    {"partition_index": index, "broker_ids": brokers} for index, brokers in enumerate(partitions)
                ],
                "configs": [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()],
            }
        ],
    )
    for broker in "123":
        described = session.wait_for(
            lambda answer: (
                [(one.leader_id, sorted(one.isr_nodes)) for one in answer.topics[0].partitions]
                == [(one[0], sorted(one)) for one in partitions]
            ),
            "Metadata",
            on=broker,
            topics=[{"name": name}],
            allow_auto_topic_creation=False,
        )
    return name, described.topics[0].topic_id


def move(session: Session, note: str, topic: str, *replicas: list[int] | None, **more: Any) -> None:
    partitions = [{"partition_index": index, "replicas": one} for index, one in enumerate(replicas)]
    session.ask_each(
        "AlterPartitionReassignments",
        timeout_ms=5000,
        topics=[{"name": topic, "partitions": partitions}],
        note=note,
        **more,
    )


def settled(session: Session, topic: str) -> None:
    """Wait until nothing moves; then see what Metadata says."""
    session.wait_for(
        lambda answer: not answer.topics,
        "ListPartitionReassignments",
        timeout_ms=5000,
        topics=[{"name": topic, "partition_indexes": [0, 1]}],
    )
    caught_up(session)
    replicas = session.look("Metadata", topics=[{"name": topic}]).topics[0].partitions
    session.wait_for(
        lambda answer: (
            all(sorted(one.replica_nodes) == sorted(one.isr_nodes) for one in answer.topics[0].partitions)
            or not replicas
        ),
        "Metadata",
        topics=[{"name": topic}],
    )
    described = session.ask("Metadata", topics=[{"name": topic}], note="settled")
    assert described.topics[0].error_code == 0


def moves(session: Session) -> None:
    topic, topic_id = placed(session, "moved", [1, 2], [2, 3])
    fill(session, topic, topic_id, "a", "b")
    move(session, "to 2 and 3", topic, [2, 3])
    settled(session, topic)
    move(session, "to one replica", topic, [3])
    settled(session, topic)
    move(session, "to three replicas", topic, [1, 2, 3])
    settled(session, topic)
    move(session, "another count, which is not allowed", topic, [1, 2], allow_replication_factor_change=False)
    settled(session, topic)
    move(session, "both partitions", topic, [2, 1], [1, 3])
    settled(session, topic)
    move(session, "nothing to cancel", topic, None)
    for note, replicas in {"a stranger": [1, 9], "twice": [1, 1], "nobody": [], "negative": [-1]}.items():
        move(session, note, topic, replicas)
    session.ask("ListPartitionReassignments", timeout_ms=5000, topics=None)


def elections(session: Session) -> None:
    topic, _ = placed(session, "elected", [1, 2, 3])
    move(session, "the preferred leader becomes 2", topic, [2, 1, 3])
    settled(session, topic)
    session.ask(
        "ElectLeaders", election_type=0, topic_partitions=[{"topic": topic, "partitions": [0]}], timeout_ms=5000
    )
    session.ask(
        "ElectLeaders",
        election_type=0,
        topic_partitions=[{"topic": topic, "partitions": [0]}],
        timeout_ms=5000,
        note="again",
    )
    session.ask(
        "ElectLeaders",
        election_type=1,
        topic_partitions=[{"topic": topic, "partitions": [0]}],
        timeout_ms=5000,
        note="unclean",
    )
    session.wait_for(lambda answer: answer.topics[0].partitions[0].leader_id == 2, "Metadata", topics=[{"name": topic}])
    session.ask("Metadata", topics=[{"name": topic}], note="elected")
    session.ask("DescribeTopicPartitions", topics=[{"name": topic}], note="elected")


def wrong_broker(session: Session) -> None:
    """Requests at brokers that follow, and at those that have no replica."""
    topic, topic_id = placed(session, "led", [1, 2])
    fill(session, topic, topic_id, "a")
    session.wait_for(
        lambda answer: answer.responses[0].partitions[0].high_watermark == 1,
        "Fetch",
        on="2",
        **fetch_fields(topic, topic_id, {"partition": 0}),
    )
    for broker in ("2", "3"):
        session.ask_each(
            "Produce", on=broker, **produce_fields(topic, topic_id, batch("b")), note=f"at broker {broker}"
        )
        session.ask_each(
            "Fetch", on=broker, **fetch_fields(topic, topic_id, {"partition": 0}), note=f"at broker {broker}"
        )
        session.ask_each(
            "ListOffsets",
            on=broker,
            replica_id=-1,
            timeout_ms=1000,
            topics=[{"name": topic, "partitions": [{"partition_index": 0, "timestamp": -1}]}],
            note=f"at broker {broker}",
        )
        session.ask_each(
            "OffsetForLeaderEpoch",
            on=broker,
            replica_id=-1,
            topics=[{"topic": topic, "partitions": [{"partition": 0, "leader_epoch": 0}]}],
            note=f"at broker {broker}",
        )
        session.ask_each(
            "DeleteRecords",
            on=broker,
            timeout_ms=1000,
            topics=[{"name": topic, "partitions": [{"partition_index": 0, "offset": 0}]}],
            note=f"at broker {broker}",
        )
        session.ask(
            "DescribeProducers",
            on=broker,
            topics=[{"name": topic, "partition_indexes": [0]}],
            note=f"at broker {broker}",
        )
        session.ask(
            "DescribeConfigs",
            on=broker,
            resources=[{"resource_type": 4, "resource_name": "1", "configuration_keys": ["node.id"]}],
            note=f"at broker {broker}",
        )


def forwarded(session: Session) -> None:
    """What only the controller decides, asked of every broker."""
    for broker in ("1", "2", "3"):
        name = session.name(f"from-{broker}")
        session.ask("CreateTopics", on=broker, topics=[{"name": name, "num_partitions": 1, "replication_factor": 3}])
        session.ask(
            "CreateTopics",
            on=broker,
            topics=[{"name": name, "num_partitions": 1, "replication_factor": 3}],
            note="again",
        )
        session.ask(
            "CreateTopics",
            on=broker,
            topics=[{"name": name + "-4", "num_partitions": 1, "replication_factor": 4}],
            note="too many replicas",
        )
        session.ask(
            "CreatePartitions", on=broker, topics=[{"name": name, "count": 3, "assignments": None}], timeout_ms=5000
        )
        session.ask(
            "IncrementalAlterConfigs",
            on=broker,
            resources=[
                {"resource_type": 2, "resource_name": name, "configs": [{"name": "min.insync.replicas", "value": "2"}]}
            ],
        )
        session.ask("DeleteTopics", on=broker, topics=[{"name": name}], timeout_ms=5000)


def in_sync_replicas(session: Session) -> None:
    """A partition that needs more replicas in sync than it has."""
    topic, topic_id = placed(session, "few", [1, 2], min_insync_replicas="3")
    for acks in (1, -1):
        session.ask_each("Produce", **produce_fields(topic, topic_id, batch("a"), acks=acks), note=f"acks {acks}")
    session.ask("Fetch", **fetch_fields(topic, topic_id, {"partition": 0}))
    session.ask("DescribeTopicPartitions", topics=[{"name": topic}])


def coordinators_elsewhere(session: Session) -> None:
    """Requests to groups and transactional ids at brokers that do not coordinate them."""
    for kind, word in ((0, "group"), (1, "transaction")):
        name = session.name(word)
        found = session.wait_for(
            lambda answer: answer.coordinators[0].error_code == 0,
            "FindCoordinator",
            key_type=kind,
            coordinator_keys=[name],
        )
        others = [broker for broker in "123" if int(broker) != found.coordinators[0].node_id]
        assert len(others) == 2
        if kind == 0:
            session.ask("OffsetFetch", on=others[0], retry=False, groups=[{"group_id": name, "topics": None}])
            session.ask("DescribeGroups", on=others[0], retry=False, groups=[name])
            session.ask("Heartbeat", on=others[0], retry=False, group_id=name, member_id="m", generation_id=1)
            session.ask("ConsumerGroupDescribe", on=others[0], retry=False, group_ids=[name])
            session.ask("DeleteGroups", on=others[0], retry=False, groups_names=[name])
        else:
            session.ask("InitProducerId", on=others[0], retry=False, transactional_id=name, transaction_timeout_ms=1000)
            session.ask(
                "EndTxn",
                on=others[0],
                retry=False,
                transactional_id=name,
                producer_id=1,
                producer_epoch=0,
                committed=True,
            )
            session.ask("DescribeTransactions", on=others[0], retry=False, transactional_ids=[name])
