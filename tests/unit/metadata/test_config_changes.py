import pytest
from metadata_clusters import SETTINGS, cluster, decided, with_topic

from sskafka.metadata.config_changes import AlterConfigOp, alter_configs, incremental_alter_configs
from sskafka.metadata.delta import ConfigResource
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import ConfigRecord
from sskafka.model.errors import ErrorCode
from sskafka.model.settings import Settings
from sskafka.wire.messages import alter_configs as full
from sskafka.wire.messages import incremental_alter_configs as incremental

TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = AlterConfigOp.SET, AlterConfigOp.DELETE, AlterConfigOp.APPEND, AlterConfigOp.SUBTRACT


def topic_cluster() -> ClusterImage:
    return with_topic(cluster(), "t", retention_ms="5000", segment_bytes="1000")


def change(
    image: ClusterImage,
    *configs: tuple[str, int, str | None],
    kind: int = TOPIC,
    name: str = "t",
) -> tuple[int, str | None]:
    resource = incremental.AlterConfigsResource(kind, name, [incremental.AlterableConfig(*item) for item in configs])
    request = incremental.IncrementalAlterConfigsRequest([resource])
    (outcome,) = decided(image, incremental_alter_configs(image, request, SETTINGS)).responses
    assert (outcome.resource_type, outcome.resource_name) == (kind, name)
    return outcome.error_code, outcome.error_message


def test_single_settings_are_set_and_deleted() -> None:
    image = topic_cluster()
    assert change(image, ("retention.ms", SET, "6000"), ("segment.bytes", DELETE, None)) == (0, None)
    assert image.topic_configs("t") == {"retention.ms": "6000"}


def test_lists_are_appended_to_and_subtracted_from() -> None:
    image = topic_cluster()
    change(image, ("cleanup.policy", APPEND, "compact"))
    assert image.topic_configs("t")["cleanup.policy"] == "delete,compact"
    change(image, ("cleanup.policy", APPEND, "compact"))
    assert image.topic_configs("t")["cleanup.policy"] == "delete,compact"
    change(image, ("cleanup.policy", SUBTRACT, "delete"))
    assert image.topic_configs("t")["cleanup.policy"] == "compact"


def test_unchanged_configs_are_not_written() -> None:
    image = topic_cluster()
    configs = [incremental.AlterableConfig("retention.ms", SET, "5000")]
    request = incremental.IncrementalAlterConfigsRequest([incremental.AlterConfigsResource(TOPIC, "t", configs)])
    assert incremental_alter_configs(image, request, SETTINGS).records == []


@pytest.mark.parametrize(
    ("config", "code"),
    [
        (("retention.ms", SET, "soon"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", SET, None), ErrorCode.INVALID_REQUEST),
        (("no.such", SET, "1"), ErrorCode.INVALID_CONFIG),
        (("no.such", APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", 9, "1"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_invalid_changes_are_rejected(config: tuple[str, int, str | None], code: ErrorCode) -> None:
    image = topic_cluster()
    before = dict(image.topic_configs("t"))
    assert change(image, config)[0] == code
    assert image.topic_configs("t") == before


def test_resources_must_exist_and_have_configs() -> None:
    image = topic_cluster()
    value = ("log.retention.ms", SET, "1")
    assert change(image, ("retention.ms", SET, "1"), name="none")[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert change(image, value, name="none")[0] == ErrorCode.INVALID_CONFIG
    assert change(image, value, name="bad/name")[0] == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert change(image, value, name="")[0] == ErrorCode.INVALID_REQUEST
    assert change(image, value, kind=BROKER, name="7")[0] == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert change(image, value, kind=BROKER, name="x")[0] == ErrorCode.INVALID_REQUEST
    assert change(image, value, kind=LOGGER, name="1")[0] == ErrorCode.INVALID_REQUEST


def test_a_duplicate_config_is_rejected() -> None:
    outcome = change(topic_cluster(), ("retention.ms", SET, "1"), ("retention.ms", DELETE, None))
    assert outcome[0] == ErrorCode.INVALID_REQUEST


def test_broker_settings_change_for_one_or_for_all() -> None:
    image = topic_cluster()
    assert change(image, ("log.retention.ms", SET, "7"), kind=BROKER, name="1")[0] == 0
    assert change(image, ("log.retention.ms", SET, "8"), kind=BROKER, name="")[0] == 0
    assert image.broker_configs(1) == {"log.retention.ms": "7"}
    assert image.broker_default_configs() == {"log.retention.ms": "8"}
    assert change(image, ("num.partitions", SET, "8"), kind=BROKER, name="") == (
        ErrorCode.INVALID_REQUEST,
        "Cannot update these configs dynamically: [num.partitions]",
    )
    assert change(image, ("listeners", SET, "A://:1"), kind=BROKER, name="")[0] == ErrorCode.INVALID_REQUEST


def test_a_login_that_cannot_be_parsed_is_rejected() -> None:
    """Also from a client that asks a controller."""
    name = "listener.name.brokers.plain.sasl.jaas.config"
    code, text = change(
        topic_cluster(), (name, SET, 'PlainLoginModule required user_a="secret"'), kind=BROKER, name="1"
    )
    assert code == ErrorCode.INVALID_REQUEST
    assert "semicolon" in str(text)
    assert "secret" not in str(text)


def replace(image: ClusterImage, *resources: full.AlterConfigsResource, validate_only: bool = False) -> list[int]:
    request = full.AlterConfigsRequest(list(resources), validate_only)
    return [outcome.error_code for outcome in decided(image, alter_configs(image, request, SETTINGS)).responses]


def test_all_settings_are_replaced_at_once() -> None:
    image = topic_cluster()
    resource = full.AlterConfigsResource(TOPIC, "t", [full.AlterableConfig("flush.messages", "1")])
    assert replace(image, resource, validate_only=True) == [0]
    assert "flush.messages" not in image.topic_configs("t")
    assert replace(image, resource) == [0]
    assert image.topic_configs("t") == {"flush.messages": "1"}


def test_a_replacement_writes_records_for_removed_configs() -> None:
    image = topic_cluster()
    request = full.AlterConfigsRequest([full.AlterConfigsResource(TOPIC, "t", [])])
    assert alter_configs(image, request, SETTINGS).records == [
        ConfigRecord(TOPIC, "t", "retention.ms", None),
        ConfigRecord(TOPIC, "t", "segment.bytes", None),
    ]


def test_resources_fail_independently_and_may_occur_only_once() -> None:
    image = topic_cluster()
    good = full.AlterConfigsResource(TOPIC, "t", [])
    bad = full.AlterConfigsResource(TOPIC, "none", [])
    assert replace(image, bad, good) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0]
    assert replace(image, good, good) == [ErrorCode.INVALID_REQUEST] * 2


CLIENT_METRICS = 16


def test_unknown_configs_are_kept_for_brokers_and_rejected_for_topics() -> None:
    image = topic_cluster()
    assert change(image, ("from.the.future", SET, "1"), kind=BROKER, name="1") == (0, None)
    assert image.broker_configs(1) == {"from.the.future": "1"}
    assert change(image, ("from.the.future", APPEND, "1"), kind=BROKER, name="1") == (
        ErrorCode.INVALID_CONFIG,
        "Unknown config name: from.the.future",
    )
    assert change(image, ("from.the.future", SET, "1")) == (
        ErrorCode.INVALID_CONFIG,
        "Unknown topic config name: from.the.future",
    )


def test_controllers_have_configs_like_brokers() -> None:
    image = topic_cluster()
    settings = Settings.resolve(
        {"node.id": "100", "controller.quorum.voters": "100@localhost:1", "process.roles": "controller"}
    )
    configs = [incremental.AlterableConfig("log.retention.ms", SET, "1")]
    request = incremental.IncrementalAlterConfigsRequest([incremental.AlterConfigsResource(BROKER, "100", configs)])
    (outcome,) = decided(image, incremental_alter_configs(image, request, settings)).responses
    assert outcome.error_code == 0
    assert image.broker_configs(100) == {"log.retention.ms": "1"}


def test_min_insync_replicas_is_cluster_wide_while_elr_is_enabled() -> None:
    image = topic_cluster()
    name = ("min.insync.replicas", SET, "2")
    del image.features["eligible.leader.replicas.version"]
    assert change(image, name, kind=BROKER, name="1")[0] == 0
    image.features["eligible.leader.replicas.version"] = 1
    assert change(image, ("min.insync.replicas", SET, "3"), kind=BROKER, name="1") == (
        ErrorCode.INVALID_CONFIG,
        "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
    )
    assert change(image, name, kind=BROKER, name="")[0] == 0
    assert change(image, ("min.insync.replicas", DELETE, None), kind=BROKER, name="") == (
        ErrorCode.INVALID_CONFIG,
        "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
    )


def test_client_metrics_subscriptions_are_stored_and_removed() -> None:
    image = topic_cluster()
    wanted = ("interval.ms", SET, "1000"), ("metrics", SET, "a.b,c"), ("match", SET, "client_id=abc.*")
    assert change(image, *wanted, kind=CLIENT_METRICS, name="cm") == (0, None)
    resource = ConfigResource(CLIENT_METRICS, "cm")
    assert image.configs(resource) == {"interval.ms": "1000", "metrics": "a.b,c", "match": "client_id=abc.*"}
    gone = [(name, DELETE, None) for name in ("interval.ms", "metrics", "match")]
    assert change(image, *gone, kind=CLIENT_METRICS, name="cm") == (0, None)
    assert resource not in image.config_resources()


@pytest.mark.parametrize(
    ("config", "code", "text"),
    [
        (("interval.ms", SET, "99"), ErrorCode.INVALID_REQUEST, "interval must be between 100 and 3600000 (1 hour)"),
        (("interval.ms", SET, "3600001"), ErrorCode.INVALID_REQUEST, "interval must be between 100 and 3600000"),
        (("interval.ms", SET, "x"), ErrorCode.INVALID_CONFIG, "configuration interval.ms: Not a number of type INT"),
        (("interval.ms", SET, None), ErrorCode.INVALID_REQUEST, "Null value not supported for : interval.ms"),
        (("interval.ms", APPEND, "5"), ErrorCode.INVALID_CONFIG, "Can't APPEND to key interval.ms because its type is"),
        (("foo", SET, "1"), ErrorCode.INVALID_REQUEST, "Unknown client metrics configuration: foo"),
        (("match", SET, "client_id"), ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: client_id"),
        (("match", SET, "color=red"), ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: color=red"),
        (("match", SET, "client_id=[a"), ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: client_id=[a"),
    ],
)
def test_client_metrics_that_kafka_rejects(config: tuple[str, int, str | None], code: ErrorCode, text: str) -> None:
    image = topic_cluster()
    refused, said = change(image, config, kind=CLIENT_METRICS, name="cm")
    assert refused == code
    assert text in (said or "")
    assert ConfigResource(CLIENT_METRICS, "cm") not in image.config_resources()


def test_a_client_metrics_subscription_needs_a_name() -> None:
    refused = change(topic_cluster(), ("interval.ms", SET, "1000"), kind=CLIENT_METRICS, name="")
    assert refused == (ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
