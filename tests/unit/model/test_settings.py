import pytest

from sskafka.model.setting import SettingError
from sskafka.model.settings import Settings, validate_dynamic_configs, validate_topic_configs
from sskafka.model.settings_table import BROKER_SETTINGS, TOPIC_SETTINGS

WEEK_MS = 7 * 24 * 3600 * 1000


def resolve(
    file: dict[str, str] | None = None, environment: dict[str, str] | None = None, **overrides: str
) -> Settings:
    return Settings.resolve(file or {}, environment or {}, {key.replace("_", "."): v for key, v in overrides.items()})


def test_defaults_are_typed() -> None:
    settings = resolve()
    assert settings["num.partitions"] == 1
    assert settings["auto.create.topics.enable"] is True
    assert settings["log.cleanup.policy"] == ("delete",)
    assert settings["log.dirs"] == ("/tmp/kafka-logs",)
    assert settings.warnings == []


def test_command_line_beats_environment_beats_file() -> None:
    file, environment = {"num.partitions": "2"}, {"SSKAFKA_NUM_PARTITIONS": "3"}
    assert resolve()["num.partitions"] == 1
    assert resolve(file)["num.partitions"] == 2
    assert resolve(file, environment)["num.partitions"] == 3
    assert resolve(file, environment, num_partitions="4")["num.partitions"] == 4


def test_the_source_of_every_value_is_known() -> None:
    settings = resolve({"num.partitions": "2"}, {"SSKAFKA_LOG_RETENTION_MS": "3"}, node_id="7")
    assert settings.where("num.partitions") == "server.properties"
    assert settings.where("log.retention.ms") == "environment variable SSKAFKA_LOG_RETENTION_MS"
    assert settings.where("node.id") == "--set"
    assert settings.where("log.dirs") == "default"


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ({}, WEEK_MS),
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
    ],
)
def test_finer_units_of_retention_come_first(file: dict[str, str], expected: int) -> None:
    settings = resolve(file)
    assert settings["log.retention.ms"] == expected
    assert settings.topic_config()["retention.ms"] == expected


def test_unknown_keys_are_warned_about_with_the_nearest_known_one() -> None:
    settings = resolve({"listners": "PLAINTEXT://:1"}, {"SSKAFKA_LOG_RETENTION_M": "1", "SSKAFKA_BOOTSTRAP": "x:1"})
    assert settings.warnings == [
        "listners (from server.properties): unknown setting, ignored; did you mean listeners?",
        "environment variable SSKAFKA_LOG_RETENTION_M: unknown; did you mean SSKAFKA_LOG_RETENTION_MS?",
    ]


def test_zookeeper_is_answered_with_kraft() -> None:
    (warning,) = resolve({"zookeeper.connect": "localhost:2181"}).warnings
    assert "KRaft replaces ZooKeeper" in warning


def test_a_topic_setting_in_the_broker_file_names_the_right_one() -> None:
    (warning,) = resolve({"retention.ms": "1"}).warnings
    assert warning.endswith("it is log.retention.ms")


def test_settings_of_kafka_that_are_not_served_are_not_taken_for_typing_mistakes() -> None:
    (warning,) = resolve({"ssl.allow.dn.changes": "true"}).warnings
    assert warning.endswith("not supported, ignored")


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("num.partitions", "0", "at least 1"),
        ("num.partitions", "many", "a whole number of 32 bits"),
        ("num.partitions", "2147483648", "a whole number of 32 bits"),
        ("log.preallocate", "yes", "true or false"),
        ("log.cleanup.policy", "delete,shred", "a list of compact, delete"),
        ("compression.type", "rar", "one of uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("compression.gzip.level", "0", "1 to 9, or -1"),
        ("partitioner.hash", "md5", "one of murmur2, murmur3"),
        ("log.dir.partition.base", "2", "0 to 1"),
    ],
)
def test_a_bad_value_is_refused_with_key_value_source_and_what_is_allowed(key: str, value: str, allowed: str) -> None:
    with pytest.raises(SettingError) as caught:
        resolve({key: value})
    assert str(caught.value).startswith(f"{key}={value!r} (from server.properties): allowed is ")
    assert allowed in str(caught.value)


def test_a_bad_secret_is_not_shown() -> None:
    secret = BROKER_SETTINGS["ssl.key.password"]
    assert "hunter2" not in str(secret._refused("hunter2", "--set"))


def test_aliases_count_as_the_setting_they_stand_for() -> None:
    settings = resolve({"broker.id": "5", "broker.number-of-partitions": "3"})
    assert (settings["node.id"], settings["num.partitions"]) == (5, 3)
    assert resolve({"broker.id": "5"}, node_id="6")["node.id"] == 6
    with pytest.raises(SettingError, match="alias"):
        resolve({"broker.id": "5", "node.id": "6"})


def test_the_lab_environment() -> None:
    brokers = "1@broker-1:80, 2@broker-2:8080:9095"
    environment = {"BROKER_ID": "2", "MAX_SEGMENT_SIZE_BYTES": "500", "BROKERS": brokers}
    settings = resolve({}, environment)
    assert (settings["node.id"], settings["log.segment.bytes"]) == (2, 500)
    assert [str(voter) for voter in settings["controller.quorum.voters"]] == ["1@broker-1:9092", "2@broker-2:9095"]
    assert settings["listeners"] == ("PLAINTEXT://:9095",)
    assert settings["advertised.listeners"] == ("PLAINTEXT://broker-2:9095",)
    assert settings["http.listener"] == ":8080"


def test_addresses_in_the_file_beat_those_implied_by_the_lab_environment() -> None:
    file = {"listeners": "PLAINTEXT://:7000", "http.listener": ""}
    settings = resolve(file, {"BROKER_ID": "1", "BROKERS": "1@broker-1:80"})
    assert (settings["listeners"], settings["http.listener"]) == (("PLAINTEXT://:7000",), "")


def test_a_bad_brokers_list_is_refused() -> None:
    with pytest.raises(SettingError, match=r"BROKERS=.*'broker-1:80' is not id@host:http-port"):
        resolve({}, {"BROKERS": "broker-1:80"})


def test_the_rack_is_the_host_unless_set() -> None:
    assert Settings.resolve(host_name="box")["broker.rack"] == "box"
    assert Settings.resolve({"broker.rack": "r1"}, host_name="box")["broker.rack"] == "r1"


def test_topic_settings_follow_topic_then_dynamic_then_static_then_default() -> None:
    static = resolve({"log.segment.bytes": "1000", "log.retention.hours": "1"})
    assert static.topic_config()["segment.bytes"] == 1000
    for_all = static.with_dynamic({}, {"log.segment.bytes": "2000"})
    assert for_all.topic_config()["segment.bytes"] == 2000
    for_one = static.with_dynamic({"log.segment.bytes": "3000"}, {"log.segment.bytes": "2000"})
    assert for_one.topic_config()["segment.bytes"] == 3000
    assert for_one.topic_config({"segment.bytes": "4000"})["segment.bytes"] == 4000
    assert for_one.topic_config()["retention.ms"] == 3_600_000


def test_unusable_dynamic_settings_are_passed_over() -> None:
    settings = resolve().with_dynamic({"log.segment.bytes": "no", "from.the.future": "1"}, {})
    assert settings["log.segment.bytes"] == 1073741824


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"retention.ms": "soon"}, "retention.ms='soon': allowed is a whole number"),
        ({"retentoin.ms": "1"}, "retentoin.ms: unknown topic setting; did you mean retention.ms?"),
        ({"retention.ms": None}, "retention.ms: null is not a value"),
        ({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"}, "more than max.compaction.lag.ms"),
        ({"leader.replication.throttled.replicas": "1:x"}, "partition:broker pairs"),
        ({"remote.storage.enable": "true"}, "not supported yet"),
    ],
)
def test_bad_topic_configs_name_the_key(configs: dict[str, str | None], message: str) -> None:
    with pytest.raises(SettingError) as caught:
        validate_topic_configs(configs)
    assert message in str(caught.value)


def test_dynamic_settings_respect_their_scope() -> None:
    assert validate_dynamic_configs({"log.retention.ms": "5"}, all_brokers=True) == {"log.retention.ms": 5}
    with pytest.raises(SettingError, match="cannot be changed while the broker runs"):
        validate_dynamic_configs({"node.id": "5"}, all_brokers=False)
    with pytest.raises(SettingError, match="single brokers only"):
        validate_dynamic_configs({"listeners": "PLAINTEXT://:1"}, all_brokers=True)


def test_every_topic_setting_has_the_default_of_the_broker_setting_it_follows() -> None:
    effective = resolve().topic_config()
    assert {name: effective[name] for name in TOPIC_SETTINGS} == {n: row.default for n, row in TOPIC_SETTINGS.items()}


@pytest.mark.parametrize("setting", [*BROKER_SETTINGS.values(), *TOPIC_SETTINGS.values()], ids=lambda row: row.name)
def test_every_row_allows_its_own_default_and_ends_its_sentence(setting: object) -> None:
    from sskafka.model.setting import Setting, format_value

    assert isinstance(setting, Setting)
    text = format_value(setting.default)
    if text is not None:
        assert setting.parse(text) == setting.default
    assert setting.doc.endswith(".")
    assert "|" not in setting.doc
