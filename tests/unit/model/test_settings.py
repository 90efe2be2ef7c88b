import pytest

from sskafka.model.dynamic_configs import validate_against_current, validate_dynamic_configs
from sskafka.model.setting import Setting, SettingError, Use, format_value
from sskafka.model.settings import Settings, validate_topic_configs
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


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("ssl.provider", "BCFIPS", "TLS is done by OpenSSL here"),
        ("listener.name.clients.ssl.provider", "BCFIPS", "TLS is done by OpenSSL here"),
        ("sasl.kerberos.service.name", "kafka", "Kerberos is not"),
        ("client.quota.callback.class", "org.example.Quota", "Java classes cannot be loaded"),
        ("metric.reporters", "org.example.Reporter", "collect the metrics from /metrics"),
        ("config.providers", "env", "environment variables"),
        ("remote.log.storage.system.enable", "true", "tiered storage is not supported"),
        ("group.share.max.size", "100", "share groups are not supported"),
        ("group.streams.max.size", "100", "streams groups are not supported"),
        ("controller.quorum.auto.join.enable", "true", "controller.quorum.voters"),
    ],
)
def test_settings_of_missing_features_stop_the_start_with_cause_and_next_step(key: str, value: str, said: str) -> None:
    with pytest.raises(SettingError) as caught:
        resolve({key: value})
    text = str(caught.value)
    assert text.startswith(f"{key.removeprefix('listener.name.clients.')}=")
    assert "(from server.properties)" in text
    assert said in text
    assert "remove the setting" in text
    assert "hunter2" not in text


def test_super_users_are_principals() -> None:
    authorizer = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    for wrong in ("admin", "User:a;admin", "User:", ":a"):
        with pytest.raises(SettingError, match=r"super\.users=.*such as User:alice"):
            resolve({**authorizer, "super.users": wrong})
    for right in ("", "User:a", "User:a; User:CN=b,OU=c;", "Group:g:h"):
        resolve({**authorizer, "super.users": right})


@pytest.mark.parametrize("protocol_map", [{}, {"listener.security.protocol.map": "CLIENTS:PLAINTEXT,LATER:SSL"}])
def test_a_prefix_of_no_listener_is_reported(protocol_map: dict[str, str]) -> None:
    """A setting for a misspelled listener protects nothing."""
    own = {"listeners": "CLIENTS://:9092", **protocol_map}
    (warning,) = resolve({**own, "listener.name.cliens.ssl.client.auth": "required"}).warnings
    assert warning == "listener.name.cliens.ssl.client.auth (from server.properties): there is no such listener"
    for known in ("clients", "http"):
        assert resolve({**own, f"listener.name.{known}.ssl.client.auth": "required"}).warnings == []
    later = resolve({**own, "listener.name.later.ssl.client.auth": "required"}).warnings
    assert bool(later) is not bool(protocol_map)


def test_super_users_without_an_authorizer_are_reported() -> None:
    (warning,) = resolve({"super.users": "User:admin"}).warnings
    assert warning == (
        "super.users (from server.properties): without authorizer.class.name every client may do everything"
    )


def test_the_only_authorizer_is_the_standard_one() -> None:
    name = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    settings = resolve({"authorizer.class.name": name, "super.users": "User:admin"})
    assert (settings["authorizer.class.name"], settings["super.users"]) == (name, "User:admin")
    with pytest.raises(SettingError, match="StandardAuthorizer"):
        resolve({"authorizer.class.name": "org.example.Authorizer"})


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("ssl.of.another.version", "this TLS setting is not supported"),
        ("listener.name.clients.ssl.of.another.version", "this TLS setting is not supported"),
        ("plain.sasl.jaas.config", "this SASL setting is not supported"),
        ("sasl.of.another.version", "this SASL setting is not supported"),
        ("authorizer.of.another.version", "the only authorizer is StandardAuthorizer"),
        ("delegation.token.master.key", "the key is delegation.token.secret.key"),
        ("quota.producer.default", "quotas of clients are set with AlterClientQuotas"),
    ],
)
def test_unknown_settings_that_promise_protection_are_refused_without_their_value(key: str, said: str) -> None:
    with pytest.raises(SettingError, match=said) as caught:
        resolve({key: "hunter2"})
    assert "hunter2" not in str(caught.value)
    with pytest.raises(SettingError, match=said):
        validate_dynamic_configs({key: "hunter2"}, all_brokers=False)


def test_brokers_need_the_listener_of_their_protocol() -> None:
    with pytest.raises(SettingError, match="there is no listener SASL_SSL"):
        resolve({"security.inter.broker.protocol": "SASL_SSL"})


@pytest.mark.parametrize(
    "row", [row for row in BROKER_SETTINGS.values() if row.use is Use.REFUSED], ids=lambda r: r.name
)
def test_every_refused_setting_may_be_written_down_with_its_default(row: Setting) -> None:
    for default in (row.default, row.kafka_default):
        text = format_value(default)
        if text is not None:
            assert resolve({row.name: text}).warnings == []


def test_settings_without_effect_are_reported_once() -> None:
    settings = resolve({"num.network.threads": "16"})
    assert settings["num.network.threads"] == 16
    (warning,) = settings.warnings
    assert warning == (
        "num.network.threads=16 (from server.properties): accepted, has no effect here, because one event loop serves "
        "all connections, requests and groups"
    )


def test_the_stock_file_of_apache_kafka_is_accepted() -> None:
    """What config/server.properties of 4.3.1 sets."""
    stock = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.bootstrap.servers": "localhost:9093",
        "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "inter.broker.listener.name": "PLAINTEXT",
        "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,"
        "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
        "num.network.threads": "3",
        "num.io.threads": "8",
        "socket.send.buffer.bytes": "102400",
        "socket.receive.buffer.bytes": "102400",
        "socket.request.max.bytes": "104857600",
        "log.dirs": "/tmp/kraft-combined-logs",
        "num.partitions": "1",
        "num.recovery.threads.per.data.dir": "1",
        "offsets.topic.replication.factor": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "log.retention.hours": "168",
        "log.segment.bytes": "1073741824",
        "log.retention.check.interval.ms": "300000",
    }
    warned = {warning.partition("=")[0] for warning in resolve(stock).warnings}
    assert warned == {
        "num.network.threads",
        "num.io.threads",
        "share.coordinator.state.topic.replication.factor",
        "share.coordinator.state.topic.min.isr",
    }


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


def test_a_broker_is_in_no_rack_unless_one_is_set() -> None:
    assert Settings.resolve(host_name="box")["broker.rack"] is None
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


def test_the_same_dynamic_settings_are_resolved_once() -> None:
    static, configs = resolve(), {"log.segment.bytes": "3000"}
    settings = static.with_dynamic({}, configs)
    assert static.with_dynamic({}, dict(configs)) is settings
    configs["log.segment.bytes"] = "4000"
    assert static.with_dynamic({}, configs)["log.segment.bytes"] == 4000
    assert static.with_dynamic(configs, {})["log.segment.bytes"] == 4000
    assert settings["log.segment.bytes"] == 3000


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"retention.ms": "soon"}, "retention.ms='soon': allowed is a whole number"),
        ({"retentoin.ms": "1"}, "retentoin.ms: unknown topic setting"),
        ({"retention.ms": None}, "retention.ms: null is not a value"),
        ({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"}, "more than max.compaction.lag.ms"),
        ({"leader.replication.throttled.replicas": "1:x"}, "partition:broker pairs"),
        ({"remote.storage.enable": "true"}, "tiered storage is not supported"),
    ],
)
def test_bad_topic_configs_name_the_key(configs: dict[str, str | None], message: str) -> None:
    with pytest.raises(SettingError) as caught:
        validate_topic_configs(configs)
    assert message in str(caught.value)


def test_no_similar_name_is_searched_for_unknown_topic_configs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search takes 0.4 ms. 9,999 topics of one request once took 4 s, and clients do not see its result."""
    monkeypatch.setattr("difflib.get_close_matches", pytest.fail)
    with pytest.raises(SettingError) as caught:
        validate_topic_configs({"retentoin.ms": "1"})
    assert caught.value.kafka_text == "Unknown topic config name: retentoin.ms"


def kafka_text(configs: dict[str, str], *, all_brokers: bool = False) -> str:
    """What Apache Kafka says to the change, which is refused."""
    current = resolve()
    try:
        validate_dynamic_configs(configs, all_brokers=all_brokers)
        validate_against_current(configs, current, current.with_dynamic(configs, {}))
    except SettingError as error:
        return error.kafka_text
    pytest.fail(f"{configs} was accepted")


def test_dynamic_settings_respect_their_scope() -> None:
    validate_dynamic_configs({"log.retention.ms": "5", "from.the.future": "x"}, all_brokers=True)
    assert (
        kafka_text({"node.id": "5", "log.dirs": "/x"}) == "Cannot update these configs dynamically: [node.id, log.dirs]"
    )
    assert kafka_text({"listeners": "PLAINTEXT://:1"}, all_brokers=True) == (
        "Cannot update these configs at default cluster level, broker id must be specified: [listeners]"
    )
    assert kafka_text({"ssl.keystore.location": "/x"}) == (
        "These security configs can be dynamically updated only per-listener using the listener prefix: "
        "[ssl.keystore.location]"
    )


def test_settings_of_one_listener() -> None:
    name = "listener.name.clients.max.connections"
    settings = resolve({name: "7", "max.connections": "9"})
    assert (settings.for_listener("CLIENTS")["max.connections"], settings["max.connections"]) == (7, 9)
    assert settings.for_listener("OTHERS")["max.connections"] == 9
    assert settings.with_dynamic({name: "8"}, {}).for_listener("CLIENTS")["max.connections"] == 8
    validate_dynamic_configs({name: "8"}, all_brokers=True)
    assert kafka_text({name: "x"}) == "Invalid value x for configuration max.connections: Not a number of type INT"
    other = "listener.name.clients.connections.max.reauth.ms"
    assert "Cannot update these configs at default cluster level" in kafka_text({other: "0"}, all_brokers=True)


@pytest.mark.parametrize(
    ("configs", "text"),
    [
        ({"log.retention.ms": "x"}, "Invalid value x for configuration log.retention.ms: Not a number of type LONG"),
        ({"num.io.threads": "17"}, "value should not be greater than double the current value 8"),
        ({"num.io.threads": "3"}, "value should be at least half the current value 8"),
        ({"log.cleaner.threads": "0"}, "Log cleaner threads should be at least 1"),
        ({"log.cleaner.threads": "3"}, "cannot be increased to more than double the current value 1"),
        ({"log.cleaner.dedupe.buffer.size": "1000"}, "must be at least 1MB per cleaner thread"),
        ({"max.connections.per.ip": "0"}, "can be set to zero only if max.connections.per.ip.overrides"),
        ({"max.connection.creation.rate": "0"}, "Invalid max.connection.creation.rate 0"),
        ({"listeners": "EXTRA://:9"}, "No security protocol defined for listener EXTRA"),
        ({"listener.name.plaintext.sasl.jaas.config": "x required;"}, "it would not be used"),
        ({"listener.name.other.plain.sasl.jaas.config": "x"}, "with a semicolon at the end"),
        ({"unclean.leader.election.enable": "yes"}, "Expected value to be either true or false"),
        ({"cordoned.log.dirs": "/nowhere"}, "log.dirs does not have /nowhere"),
        ({"cordoned.log.dirs": "*,/tmp/kafka-logs"}, "* must be the only entry"),
        ({"compression.type": "x"}, "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"),
    ],
)
def test_dynamic_values_that_kafka_refuses(configs: dict[str, str], text: str) -> None:
    assert text in kafka_text(configs)


def test_a_broker_cordons_only_its_own_directories() -> None:
    with pytest.raises(SettingError, match=r"cordoned.log.dirs='/b,/c'.*: log.dirs does not have /c"):
        resolve({"log.dirs": "/a,/b", "cordoned.log.dirs": "/b,/c"})
    for cordoned in ("/b", "/b,/a", "*"):
        assert resolve({"log.dirs": "/a,/b", "cordoned.log.dirs": cordoned})["cordoned.log.dirs"]
    settings = resolve({"log.dirs": "/a,/b"})
    wanted = {"cordoned.log.dirs": "/b"}
    validate_against_current(wanted, settings, settings.with_dynamic(wanted, {}))


def test_every_topic_setting_has_the_default_of_the_broker_setting_it_follows() -> None:
    effective = resolve().topic_config()
    assert {name: effective[name] for name in TOPIC_SETTINGS} == {n: row.default for n, row in TOPIC_SETTINGS.items()}


@pytest.mark.parametrize("setting", [*BROKER_SETTINGS.values(), *TOPIC_SETTINGS.values()], ids=lambda row: row.name)
def test_every_row_allows_its_own_default_and_ends_its_sentence(setting: object) -> None:
    assert isinstance(setting, Setting)
    text = format_value(setting.default)
    if text is not None:
        assert setting.parse(text) == setting.default
    assert setting.doc.endswith(".")
    assert "|" not in setting.doc
