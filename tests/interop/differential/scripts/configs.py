"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources."""

from typing import Any

from differential.scripts.common import caught_up, create_topic
from differential.session import Session

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
STILL_LOOKS = 5

# Addresses and directories differ between the two by nature; these are asked for by name elsewhere.
OWN_PLACES = {"listeners", "advertised.listeners", "log.dirs", "log.dir", "controller.quorum.voters"}


def settled(session: Session, described: dict[str, Any]) -> None:
    """Apache Kafka's brokers take over a change a moment after the answer: wait until nothing moves any more."""
    caught_up(session)
    seen: list[Any] = []

    def is_still(answer: Any) -> bool:
        seen.append(str(answer.results))
        return len(seen) > STILL_LOOKS and len(set(seen[-STILL_LOOKS:])) == 1

    session.wait_for(is_still, "DescribeConfigs", **described)


def topic_descriptions(session: Session) -> None:
    topic = session.name("described")
    create_topic(session, topic, retention_ms="123456", cleanup_policy="compact,delete")
    for synonyms in (False, True):
        for documentation in (False, True):
            session.ask_each(
                "DescribeConfigs",
                include_synonyms=synonyms,
                include_documentation=documentation,
                note=f"synonyms {synonyms}, documentation {documentation}",
                resources=[{"resource_type": TOPIC, "resource_name": topic, "configuration_keys": None}],
            )
    for keys in ([], ["retention.ms"], ["no.such.setting", "retention.ms"]):
        session.ask_each(
            "DescribeConfigs",
            resources=[{"resource_type": TOPIC, "resource_name": topic, "configuration_keys": keys}],
            note=f"keys {keys}",
        )


def broker_descriptions(session: Session) -> None:
    for name in ("1", ""):
        for keys in (None, ["log.retention.ms"], ["log.segment.bytes", "num.partitions"], []):
            session.ask(
                "DescribeConfigs",
                include_synonyms=True,
                note=f"broker {name!r}, keys {keys}",
                resources=[{"resource_type": BROKER, "resource_name": name, "configuration_keys": keys}],
            )


def wrong_resources(session: Session) -> None:
    topic = session.name("one")
    create_topic(session, topic)
    for kind, name in (
        (TOPIC, session.name("none")),
        (TOPIC, ""),
        (TOPIC, "bad/name"),
        (BROKER, "99"),
        (BROKER, "x"),
        (BROKER_LOGGER, "99"),
        (CLIENT_METRICS, ""),
        (CLIENT_METRICS, session.name("metrics")),
        (GROUP, ""),
        (GROUP, session.name("group")),
        (0, "x"),
        (1, "x"),
        (77, "x"),
    ):
        resource = {"resource_type": kind, "resource_name": name}
        session.ask_each(
            "DescribeConfigs", resources=[{**resource, "configuration_keys": None}], note=f"type {kind}, name {name!r}"
        )
        session.ask_each(
            "IncrementalAlterConfigs",
            resources=[{**resource, "configs": [{"name": "no.such", "config_operation": SET, "value": "1"}]}],
            note=f"type {kind}, name {name!r}",
        )
        session.ask_each(
            "AlterConfigs",
            resources=[{**resource, "configs": [{"name": "no.such", "value": "1"}]}],
            note=f"type {kind}, name {name!r}",
        )
    one: dict[str, Any] = {"resource_type": TOPIC, "resource_name": topic}
    session.ask_each(
        "DescribeConfigs",
        resources=[{**one, "configuration_keys": ["retention.ms"]}, {**one, "configuration_keys": ["retention.ms"]}],
        note="twice",
    )
    session.ask_each("DescribeConfigs", resources=[], note="nothing")
    session.ask_each("IncrementalAlterConfigs", resources=[one, one], note="twice")
    session.ask_each("IncrementalAlterConfigs", resources=[], note="nothing")
    session.ask_each("AlterConfigs", resources=[], note="nothing")


CHANGES: tuple[tuple[str, int, str | None], ...] = (
    ("retention.ms", SET, "5000000"),
    ("retention.ms", SET, "soon"),
    ("retention.ms", SET, ""),
    ("retention.ms", SET, None),
    ("retention.ms", SET, "-2"),
    ("retention.ms", APPEND, "1"),
    ("retention.ms", DELETE, None),
    ("retention.ms", DELETE, "5"),
    ("cleanup.policy", APPEND, "compact"),
    ("cleanup.policy", APPEND, "compact"),
    ("cleanup.policy", SUBTRACT, "delete"),
    ("cleanup.policy", SUBTRACT, "none"),
    ("cleanup.policy", SET, "compact,compact"),
    ("cleanup.policy", SET, ""),
    ("cleanup.policy", SET, "none"),
    ("min.insync.replicas", SET, "0"),
    ("min.insync.replicas", SET, "5"),
    ("compression.type", SET, "brotli"),
    ("compression.type", SET, "ZSTD"),
    ("segment.bytes", SET, "2000000"),
    ("segment.ms", SET, "0"),
    ("max.message.bytes", SET, "99999999999"),
    ("preallocate", SET, "maybe"),
    ("preallocate", SET, "TRUE"),
    ("unclean.leader.election.enable", SET, "true"),
    ("leader.replication.throttled.replicas", SET, "*"),
    ("leader.replication.throttled.replicas", SET, "nonsense"),
    ("leader.replication.throttled.replicas", SET, "0:1"),
    ("leader.replication.throttled.replicas", APPEND, "1:1"),
    ("message.timestamp.type", SET, "Yesterday"),
    ("remote.storage.enable", SET, "true"),
    ("local.retention.ms", SET, "-3"),
    ("no.such.setting", SET, "1"),
    ("no.such.setting", DELETE, None),
    ("", SET, "1"),
    ("retention.ms", 9, "1"),
)


def incremental_changes(session: Session) -> None:
    topic = session.name("changed")
    create_topic(session, topic)
    resource = {"resource_type": TOPIC, "resource_name": topic}
    for name, operation, value in CHANGES:
        for validate_only in (True, False):
            session.ask_each(
                "IncrementalAlterConfigs",
                validate_only=validate_only,
                note=f"{name} {operation} {value!r}{' validate' if validate_only else ''}",
                resources=[{**resource, "configs": [{"name": name, "config_operation": operation, "value": value}]}],
            )
        described = {"include_synonyms": True, "resources": [{**resource, "configuration_keys": [name]}]}
        settled(session, described)
        session.ask("DescribeConfigs", note=f"after {name} {operation} {value!r}", **described)
    session.ask(
        "IncrementalAlterConfigs",
        note="a setting twice",
        resources=[
            {
                **resource,
                "configs": [
                    {"name": "retention.ms", "config_operation": SET, "value": "1"},
                    {"name": "retention.ms", "config_operation": DELETE, "value": None},
                ],
            }
        ],
    )
    session.ask(
        "IncrementalAlterConfigs",
        note="one good, one bad",
        resources=[
            {
                **resource,
                "configs": [
                    {"name": "retention.ms", "config_operation": SET, "value": "777"},
                    {"name": "retention.bytes", "config_operation": SET, "value": "x"},
                ],
            }
        ],
    )
    caught_up(session)
    session.ask("DescribeConfigs", resources=[{**resource, "configuration_keys": ["retention.ms", "retention.bytes"]}])


def whole_replacements(session: Session) -> None:
    topic = session.name("replaced")
    create_topic(session, topic, retention_ms="1", cleanup_policy="compact")
    resource = {"resource_type": TOPIC, "resource_name": topic}
    for configs in (
        [("retention.ms", "7")],
        [],
        [("retention.ms", None)],
        [("retention.ms", "x")],
        [("no.such", "1")],
        [("segment.ms", "1"), ("segment.ms", "2")],
    ):
        for validate_only in (True, False):
            session.ask_each(
                "AlterConfigs",
                validate_only=validate_only,
                resources=[{**resource, "configs": [{"name": name, "value": value} for name, value in configs]}],
                note=f"{configs}",
            )
        caught_up(session)
        session.ask(
            "DescribeConfigs",
            include_synonyms=True,
            resources=[{**resource, "configuration_keys": ["retention.ms", "cleanup.policy", "segment.ms"]}],
        )


BROKER_CHANGES: tuple[tuple[str, str | None], ...] = (
    ("log.retention.bytes", "123456789"),
    ("log.retention.bytes", "x"),
    ("background.threads", "11"),
    ("background.threads", "1000"),
    ("num.io.threads", "0"),
    ("log.dirs", "/tmp/elsewhere"),
    ("cordoned.log.dirs", "/tmp/elsewhere"),
    ("cordoned.log.dirs", "*,/tmp/elsewhere"),
    ("node.id", "5"),
    ("no.such.setting", "1"),
    ("log.cleaner.threads", "2"),
    ("max.connections", "1000"),
    ("min.insync.replicas", "1"),
    ("leader.replication.throttled.rate", "1000000"),
    ("follower.replication.throttled.rate", "-1"),
    ("auto.create.topics.enable", "false"),
    ("message.max.bytes", "2000000"),
)


def broker_changes(session: Session) -> None:
    for target in ("1", ""):
        resource = {"resource_type": BROKER, "resource_name": target}
        for name, value in BROKER_CHANGES:
            described = {
                "include_synonyms": True,
                "resources": [{"resource_type": BROKER, "resource_name": "1", "configuration_keys": [name]}],
            }
            session.ask(
                "IncrementalAlterConfigs",
                resources=[{**resource, "configs": [{"name": name, "config_operation": SET, "value": value}]}],
                note=f"broker {target!r}: {name}={value}",
            )
            settled(session, described)
            session.ask("DescribeConfigs", note=f"broker {target!r}: {name}={value}", **described)
            session.ask(
                "IncrementalAlterConfigs",
                resources=[{**resource, "configs": [{"name": name, "config_operation": DELETE, "value": None}]}],
                note=f"broker {target!r}: {name} deleted",
            )
            settled(session, described)
            session.ask("DescribeConfigs", note=f"broker {target!r}: {name} deleted", **described)


GROUP_CHANGES: tuple[tuple[str, str | None], ...] = (
    ("consumer.session.timeout.ms", "50000"),
    ("consumer.session.timeout.ms", "1"),
    ("consumer.heartbeat.interval.ms", "6000"),
    ("consumer.heartbeat.interval.ms", "x"),
    ("share.record.lock.duration.ms", "20000"),
    ("no.such.setting", "1"),
)


def group_changes(session: Session) -> None:
    resource = {"resource_type": GROUP, "resource_name": session.name("group")}
    for name, value in GROUP_CHANGES:
        session.ask_each(
            "IncrementalAlterConfigs",
            resources=[{**resource, "configs": [{"name": name, "config_operation": SET, "value": value}]}],
            note=f"{name}={value}",
        )
        caught_up(session)
        session.ask(
            "DescribeConfigs",
            include_synonyms=True,
            resources=[{**resource, "configuration_keys": None}],
            note=f"after {name}={value}",
        )


def listed_resources(session: Session) -> None:
    if not session.versions("ListConfigResources"):
        return
    session.ask("ListConfigResources", version=0)
    for types in ([CLIENT_METRICS], [BROKER], [BROKER_LOGGER], [GROUP], [77], [0]):
        session.ask("ListConfigResources", resource_types=types, note=f"types {types}")
