import pytest

from sskafka.model.listeners import Endpoint, Voter, parse_address
from sskafka.model.setting import SettingError
from sskafka.model.settings import Settings


def resolve(**keys: str) -> Settings:
    return Settings.resolve({key.replace("_", "."): value for key, value in keys.items()}, host_name="box")


def test_a_combined_node_of_apache_kafka() -> None:
    settings = resolve(
        node_id="1",
        process_roles="broker,controller",
        listeners="PLAINTEXT://:9092,CONTROLLER://:9093",
        advertised_listeners="PLAINTEXT://localhost:9092",
        controller_listener_names="CONTROLLER",
        controller_quorum_voters="1@localhost:9093",
        listener_security_protocol_map="CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL",
        inter_broker_listener_name="PLAINTEXT",
    )
    assert settings.listeners == (Endpoint("PLAINTEXT", "", 9092),)
    assert settings.controller_listeners == (Endpoint("CONTROLLER", "", 9093),)
    assert settings.advertised_listeners == (Endpoint("PLAINTEXT", "localhost", 9092),)
    assert settings.voters == (Voter(1, "localhost", 9093),)


def test_without_advertised_listeners_the_host_name_stands_in_for_every_interface() -> None:
    settings = resolve(listeners="A://:0,B://10.0.0.1:9093,C://[::1]:9094")
    assert [(item.host, item.port) for item in settings.advertised_listeners] == [
        ("box", 0),
        ("10.0.0.1", 9093),
        ("::1", 9094),
    ]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"listeners": "PLAINTEXT://:1,SASL_SSL://:9093"}, "(from default): listener SASL_SSL: supported are PLAIN"),
        ({"listeners": "SSL://:9093,OPEN://:9094"}, "No security protocol defined for listener OPEN"),
        (
            {"listeners": "PLAINTEXT://:1,SSL://:9093", "ssl_principal_mapping_rules": "RULE:x"},
            "expected DEFAULT or RULE:",
        ),
        ({"listeners": "localhost:9092"}, "allowed is NAME://host:port"),
        ({"listeners": "A://:70000"}, "the port is above 65535"),
        ({"listeners": "A://:1,A://:2"}, "the name A occurs more than once"),
        ({"listeners": "A://:1,B://:1"}, "the address :1 occurs more than once"),
        ({"listeners": "A://:1", "inter_broker_listener_name": "B"}, "no such listener; there are A"),
        ({"listeners": "A://:1", "advertised_listeners": "B://x:1"}, "B is not among listeners"),
        ({"listeners": "C://:1", "controller_listener_names": "C"}, "a broker needs a listener"),
        ({"controller_quorum_voters": "localhost:9093"}, "allowed is id@host:port"),
        ({"controller_quorum_voters": "1@a:1,1@b:1"}, "the id 1 occurs more than once"),
        ({"controller_quorum_voters": "2@a:1", "node_id": "1"}, "node.id 1 is a controller but not listed here"),
        ({"listener_security_protocol_map": "X:TELNET"}, "'X:TELNET' is not NAME:PROTOCOL"),
    ],
)
def test_bad_addresses_are_refused(keys: dict[str, str], message: str) -> None:
    with pytest.raises(SettingError) as caught:
        resolve(**keys)
    assert message in str(caught.value)


def test_two_listeners_may_both_ask_for_any_free_port() -> None:
    assert [item.port for item in resolve(listeners="A://:0,B://:0").listeners] == [0, 0]


def test_http_and_adr_listeners() -> None:
    assert parse_address("http.listener", "") is None
    assert parse_address("http.listener", ":80") == ("", 80)
    assert parse_address("http.listener", "[::1]:80") == ("::1", 80)
    with pytest.raises(SettingError, match="allowed is host:port"):
        parse_address("http.listener", "80")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "PLAINTEXT"),
        ({"inter.broker.listener.name": "INTERNAL"}, "INTERNAL"),
        ({"security.inter.broker.protocol": "PLAINTEXT"}, "PLAINTEXT"),
        ({"listeners": "INTERNAL://:1,CLIENTS://:2"}, "INTERNAL"),
    ],
)
def test_the_listener_between_brokers(given: dict[str, str], expected: str) -> None:
    names = "INTERNAL:PLAINTEXT,CLIENTS:PLAINTEXT,PLAINTEXT:PLAINTEXT"
    base = {"listeners": "INTERNAL://:1,PLAINTEXT://:2", "listener.security.protocol.map": names}
    assert Settings.resolve({**base, **given}).inter_broker_listener == expected


def test_the_listener_between_brokers_is_named_once() -> None:
    with pytest.raises(SettingError, match="only one of"):
        Settings.resolve({"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"})


def test_controllers_list_voters_and_not_only_addresses() -> None:
    with pytest.raises(SettingError, match=r"list them in controller\.quorum\.voters"):
        Settings.resolve({"controller.quorum.bootstrap.servers": "a:1,b:2"})
    assert Settings.resolve({"controller.quorum.bootstrap.servers": "a:1"}).voters == ()
