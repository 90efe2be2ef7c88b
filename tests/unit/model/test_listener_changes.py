import pytest

from sskafka.model.listener_changes import check_listener_changes
from sskafka.model.setting import SettingError
from sskafka.model.settings import Settings

PLAIN, EXTRA, CONTROLLER = "PLAINTEXT://:9092", "EXTRA://:9093", "CONTROLLER://:9094"
MAP = "PLAINTEXT:PLAINTEXT,EXTRA:PLAINTEXT,CONTROLLER:PLAINTEXT"


def settings(listeners: str = PLAIN, **more: str) -> Settings:
    named = {name.replace("_", "."): value for name, value in more.items()}
    return Settings.resolve({"listeners": listeners, "listener.security.protocol.map": MAP, **named})


def becoming(current: Settings, **dynamic: str) -> Settings:
    return current.with_dynamic({name.replace("_", "."): value for name, value in dynamic.items()}, {})


def refusal(current: Settings, **dynamic: str) -> str:
    with pytest.raises(SettingError) as caught:
        check_listener_changes(current, becoming(current, **dynamic))
    return caught.value.kafka_text


def test_listeners_may_be_added_and_removed_again_where_others_are_advertised() -> None:
    current = settings(advertised_listeners=PLAIN)
    more = becoming(current, listeners=f"{PLAIN},{EXTRA}")
    check_listener_changes(current, more)
    check_listener_changes(more, current)


def test_without_advertised_listeners_every_listener_is_advertised_and_stays() -> None:
    current = becoming(settings(), listeners=f"{PLAIN},{EXTRA}")
    text = refusal(current, listeners=PLAIN)
    assert "Advertised listeners 'EXTRA,PLAINTEXT' must be a subset of listeners 'PLAINTEXT'" in text


def test_the_listener_between_brokers_stays() -> None:
    between = {"inter_broker_listener_name": "EXTRA", "advertised_listeners": PLAIN}
    assert "between brokers, EXTRA," in refusal(settings(f"{PLAIN},{EXTRA}", **between), listeners=PLAIN)


def test_controller_listeners_stay() -> None:
    current = settings(f"{PLAIN},{CONTROLLER}", controller_listener_names="CONTROLLER")
    for listeners in (PLAIN, f"{PLAIN},{EXTRA}"):
        assert "controller listeners cannot be added or removed" in refusal(current, listeners=listeners)
    current = settings(controller_listener_names="CONTROLLER")
    assert "there are ''" in refusal(current, listeners=f"{PLAIN},{CONTROLLER}")


def test_a_new_listener_needs_a_protocol_and_an_address() -> None:
    current = settings(advertised_listeners=PLAIN)
    assert "for listener OTHER" in refusal(current, listeners=f"{PLAIN},OTHER://:1")
    assert "allowed is NAME://host:port" in refusal(current, listeners="garbage")
    assert "occurs more than once" in refusal(current, listeners=f"{PLAIN},{EXTRA},{EXTRA}")
    assert "not NAME:PROTOCOL" in refusal(current, listener_security_protocol_map="PLAINTEXT:NONE")


def test_another_address_of_a_listener_and_more_names_in_the_map_are_taken() -> None:
    current = settings(advertised_listeners=PLAIN)
    check_listener_changes(current, becoming(current, listeners="PLAINTEXT://:1"))
    check_listener_changes(current, becoming(current, listener_security_protocol_map=f"{MAP},MORE:SSL"))
