import pytest

from sskafka.model.config_description import (
    ConfigSource,
    ConfigSynonym,
    describe_broker,
    describe_broker_defaults,
    describe_topic,
)
from sskafka.model.dynamic_configs import validate_dynamic_configs
from sskafka.model.setting import SettingError, Type
from sskafka.model.settings import Settings
from sskafka.model.settings_table import BROKER_SETTINGS, TOPIC_SETTINGS


def test_a_topics_value_lists_everything_it_overrides() -> None:
    settings = Settings.resolve({"log.retention.hours": "2"}).with_dynamic(
        {"log.retention.ms": "30"}, {"log.retention.ms": "40"}
    )
    (entry,) = describe_topic(settings, {"retention.ms": "20"}, {"retention.ms"})
    assert (entry.value, entry.source, entry.type) == ("20", ConfigSource.DYNAMIC_TOPIC_CONFIG, Type.LONG)
    assert entry.synonyms == (
        ConfigSynonym("retention.ms", "20", ConfigSource.DYNAMIC_TOPIC_CONFIG),
        ConfigSynonym("log.retention.ms", "30", ConfigSource.DYNAMIC_BROKER_CONFIG),
        ConfigSynonym("log.retention.ms", "40", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ConfigSynonym("log.retention.hours", "2", ConfigSource.STATIC_BROKER_CONFIG),
        ConfigSynonym("log.retention.hours", "168", ConfigSource.DEFAULT_CONFIG),
    )


def test_a_topics_value_from_a_coarser_broker_setting_is_in_the_topics_unit() -> None:
    (entry,) = describe_topic(Settings.resolve({"log.retention.hours": "2"}), {}, {"retention.ms"})
    assert (entry.value, entry.source, entry.read_only) == ("7200000", ConfigSource.DEFAULT_CONFIG, False)
    assert entry.synonyms == ()  # as Apache Kafka shows it: the finer name is not set anywhere


def test_all_settings_are_described_and_unknown_names_left_out() -> None:
    settings = Settings.resolve()
    topic_hidden = {row.name for row in TOPIC_SETTINGS.values() if row.hidden_while_unset}
    assert {entry.name for entry in describe_topic(settings, {})} == set(TOPIC_SETTINGS) - topic_hidden
    hidden = {row.name for row in BROKER_SETTINGS.values() if row.hidden_while_unset}
    assert {entry.name for entry in describe_broker(settings)} == {*BROKER_SETTINGS, "broker.id"} - hidden
    assert describe_broker(settings, {"no.such.thing"}) == []
    assert all(entry.source is ConfigSource.DEFAULT_CONFIG for entry in describe_topic(settings, {}))


@pytest.mark.parametrize(
    "name",
    [
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    ],
)
def test_rates_of_replication_are_shown_once_they_are_set(name: str) -> None:
    """As in Apache Kafka, where kafka-reassign-partitions sets and removes them."""
    settings = Settings.resolve()
    assert describe_broker(settings, {name}) == []
    (entry,) = describe_broker(settings.with_dynamic({name: "1000"}, {name: "2000"}), {name})
    assert (entry.value, entry.source, entry.read_only) == ("1000", ConfigSource.DYNAMIC_BROKER_CONFIG, False)
    assert [(synonym.value, synonym.source) for synonym in entry.synonyms] == [
        ("1000", ConfigSource.DYNAMIC_BROKER_CONFIG),
        ("2000", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
    ]
    validate_dynamic_configs({name: "0"}, all_brokers=True)
    with pytest.raises(SettingError):
        validate_dynamic_configs({name: "-1"}, all_brokers=False)


def test_brokers_show_what_may_change() -> None:
    settings = Settings.resolve({"node.id": "4"})
    by_name = {entry.name: entry for entry in describe_broker(settings)}
    assert (by_name["node.id"].value, by_name["node.id"].read_only) == ("4", True)
    assert (by_name["broker.id"].value, by_name["broker.id"].source) == ("4", ConfigSource.STATIC_BROKER_CONFIG)
    assert by_name["log.segment.bytes"].read_only is False
    assert (by_name["ssl.key.password"].sensitive, by_name["ssl.key.password"].value) == (True, None)


def test_names_that_nobody_knows_are_listed_as_secrets() -> None:
    settings = Settings.resolve({"my.plugin.key": "hunter2"}).with_dynamic({"my.plugin.key": "hunter3"}, {})
    (entry,) = describe_broker(settings, {"my.plugin.key"})
    assert (entry.value, entry.sensitive, entry.read_only, entry.type) == (None, True, True, Type.UNKNOWN)
    assert [(synonym.value, synonym.source) for synonym in entry.synonyms] == [
        (None, ConfigSource.DYNAMIC_BROKER_CONFIG),
        (None, ConfigSource.STATIC_BROKER_CONFIG),
    ]


def test_settings_of_one_listener_are_listed_above_those_of_all() -> None:
    name = "listener.name.clients.max.connections"
    (entry,) = describe_broker(Settings.resolve().with_dynamic({name: "7"}, {"max.connections": "9"}), {name})
    assert (entry.value, entry.type, entry.sensitive) == ("7", Type.INT, False)
    assert [(synonym.name, synonym.value) for synonym in entry.synonyms] == [
        (name, "7"),
        ("max.connections", "9"),
        ("max.connections", "2147483647"),
    ]


def test_a_finer_name_that_is_not_set_shows_no_value() -> None:
    entries = describe_broker(
        Settings.resolve({"log.retention.hours": "2"}), {"log.retention.ms", "log.retention.hours"}
    )
    assert {entry.name: entry.value for entry in entries} == {"log.retention.ms": None, "log.retention.hours": "2"}


def test_internal_topic_settings_are_listed_once_they_are_set() -> None:
    (entry,) = describe_topic(Settings.resolve(), {"internal.segment.bytes": "20"}, {"internal.segment.bytes"})
    assert (entry.value, entry.source) == ("20", ConfigSource.DYNAMIC_TOPIC_CONFIG)


def test_the_default_broker_shows_only_what_was_changed_for_all() -> None:
    settings = Settings.resolve().with_dynamic({"log.retention.ms": "1"}, {"log.segment.bytes": "2000"})
    (entry,) = describe_broker_defaults(settings)
    assert (entry.name, entry.value, entry.source) == (
        "log.segment.bytes",
        "2000",
        ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
    )
