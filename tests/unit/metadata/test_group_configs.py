"""Group configs (config resource type 32), validated as in Apache Kafka 4.3.1."""

import pytest
from metadata_clusters import SETTINGS, cluster, decided

from sskafka.metadata.config_changes import AlterConfigOp, alter_configs, incremental_alter_configs
from sskafka.metadata.delta import ConfigResource
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import RESOURCE_GROUP
from sskafka.model.config_description import ConfigSource, describe_group
from sskafka.model.errors import ErrorCode
from sskafka.model.group_configs import effective_int
from sskafka.model.settings import Settings
from sskafka.wire.messages import alter_configs as full
from sskafka.wire.messages import incremental_alter_configs as incremental

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
ASSIGNMENT = "consumer.assignment.interval.ms"
SET, DELETE, APPEND = AlterConfigOp.SET, AlterConfigOp.DELETE, AlterConfigOp.APPEND


def change(
    image: ClusterImage, *configs: tuple[str, int, str | None], group: str = "g", settings: Settings = SETTINGS
) -> tuple[int, str | None]:
    named = [incremental.AlterableConfig(*config) for config in configs]
    request = incremental.IncrementalAlterConfigsRequest(
        [incremental.AlterConfigsResource(RESOURCE_GROUP, group, named)]
    )
    (outcome,) = decided(image, incremental_alter_configs(image, request, settings)).responses
    return outcome.error_code, outcome.error_message


def stored(image: ClusterImage, group: str = "g") -> dict[str, str]:
    return dict(image.configs(ConfigResource(RESOURCE_GROUP, group)))


def test_configs_of_nonexistent_groups_can_be_set_and_deleted() -> None:
    image = cluster()
    assert change(image, (SESSION, SET, "50000"), (HEARTBEAT, SET, "6000")) == (0, None)
    assert stored(image) == {SESSION: "50000", HEARTBEAT: "6000"}
    assert change(image, (SESSION, DELETE, None)) == (0, None)
    assert stored(image) == {HEARTBEAT: "6000"}


def test_alter_configs_replaces_all_settings_of_a_group() -> None:
    image = cluster()
    change(image, (SESSION, SET, "50000"))
    resource = full.AlterConfigsResource(RESOURCE_GROUP, "g", [full.AlterableConfig(HEARTBEAT, "6000")])
    decided(image, alter_configs(image, full.AlterConfigsRequest([resource]), SETTINGS))
    assert stored(image) == {HEARTBEAT: "6000"}


@pytest.mark.parametrize(
    ("name", "value", "bound"),
    [
        (SESSION, "44999", "greater than or equal to group.consumer.min.session.timeout.ms"),
        (SESSION, "60001", "less than or equal to group.consumer.max.session.timeout.ms"),
        (HEARTBEAT, "4999", "greater than or equal to group.consumer.min.heartbeat.interval.ms"),
        (HEARTBEAT, "15001", "less than or equal to group.consumer.max.heartbeat.interval.ms"),
        (ASSIGNMENT, "15001", "less than or equal to group.consumer.max.assignment.interval.ms"),
        ("share.record.lock.duration.ms", "14999", "greater than or equal to group.share.min.record.lock.duration.ms"),
        ("share.delivery.count.limit", "11", "less than or equal to group.share.max.delivery.count.limit"),
        (
            "share.partition.max.record.locks",
            "4001",
            "less than or equal to group.share.max.partition.max.record.locks",
        ),
        ("streams.session.timeout.ms", "60001", "less than or equal to group.streams.max.session.timeout.ms"),
        ("streams.num.standby.replicas", "3", "less than or equal to group.streams.max.standby.replicas"),
    ],
)
def test_values_must_be_within_the_bounds_of_the_brokers(name: str, value: str, bound: str) -> None:
    image = cluster()
    assert change(image, (name, SET, value)) == (ErrorCode.INVALID_CONFIG, f"{name} must be {bound}")
    assert stored(image) == {}


@pytest.mark.parametrize(
    "config",
    [
        (SESSION, SET, "abc"),
        (SESSION, SET, ""),
        (ASSIGNMENT, SET, "-1"),
        ("share.auto.offset.reset", SET, "none"),
        ("share.auto.offset.reset", SET, "EARLIEST"),
        ("share.auto.offset.reset", SET, "by_duration:x"),
        ("share.auto.offset.reset", SET, "by_duration:P"),
        ("share.isolation.level", SET, "READ_COMMITTED"),
        ("share.renew.acknowledge.enable", SET, "x"),
        (SESSION, APPEND, "50000"),
    ],
)
def test_invalid_values_are_rejected(config: tuple[str, int, str]) -> None:
    assert change(cluster(), config)[0] == ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize("value", ["earliest", "by_duration:PT1H", "by_duration:P1DT2H3M4.5S"])
def test_share_auto_offset_reset_is_accepted(value: str) -> None:
    assert change(cluster(), ("share.auto.offset.reset", SET, value)) == (0, None)


def test_unknown_configs_are_rejected() -> None:
    image = cluster()
    assert change(image, ("no.such", SET, "1")) == (ErrorCode.INVALID_CONFIG, "Unknown group config name: no.such")
    nameless = change(image, (SESSION, SET, "50000"), group="")
    assert nameless == (ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    null = change(image, (SESSION, SET, None))
    assert null == (ErrorCode.INVALID_REQUEST, f"Null value not supported for : {SESSION}")


def test_the_session_timeout_must_exceed_the_heartbeat_interval() -> None:
    wide = Settings.resolve({f"group.consumer.{name}": "1" for name in ("min.session.timeout.ms",)})
    refused = change(cluster(), (SESSION, SET, "5000"), settings=wide)
    assert refused == (ErrorCode.INVALID_CONFIG, f"{SESSION} must be greater than {HEARTBEAT}")
    assert change(cluster(), (SESSION, SET, "5001"), settings=wide) == (0, None)


def test_a_stored_value_is_clamped_to_narrower_bounds() -> None:
    narrow = Settings.resolve({"group.consumer.max.session.timeout.ms": "46000"})
    assert effective_int(SESSION, {SESSION: "50000"}, narrow) == 46_000
    assert effective_int(SESSION, {SESSION: "1"}, narrow) == 45_000
    assert effective_int(SESSION, {SESSION: "from a newer broker"}, narrow) == 45_000
    assert effective_int(SESSION, {}, narrow) == 45_000


def test_a_group_shows_its_settings_and_those_of_the_broker() -> None:
    settings = Settings.resolve().with_dynamic({"group.consumer.assignment.interval.ms": "500"}, {})
    shown = {entry.name: entry for entry in describe_group(settings, {SESSION: "50000"})}
    assert len(shown) == 17
    session = shown[SESSION]
    assert (session.value, session.source, session.read_only) == ("50000", 8, False)
    assert [tuple(synonym) for synonym in session.synonyms] == [
        (SESSION, "50000", ConfigSource.DYNAMIC_GROUP_CONFIG),
        ("group.consumer.session.timeout.ms", "45000", ConfigSource.DEFAULT_CONFIG),
    ]
    assignment = shown[ASSIGNMENT]
    assert (assignment.value, assignment.source) == ("500", ConfigSource.DYNAMIC_BROKER_CONFIG)
    level = shown["share.isolation.level"]
    assert [tuple(synonym) for synonym in level.synonyms] == [("share.isolation.level", "read_uncommitted", 5)]
