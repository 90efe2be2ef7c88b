"""JAAS texts, and the messages of PLAIN and OAUTHBEARER."""

import pytest

from sskafka.model.security.errors import SaslError
from sskafka.model.security.jaas import JaasError, parse_jaas
from sskafka.model.security.sasl_messages import bearer_message, parse_bearer, parse_plain, plain_message

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_a_login_module_with_users() -> None:
    module = parse_jaas(f'{PLAIN} required\n username="admin" password="a;\\"b="\n user_alice=\'x y\' user_bob=z;\n')
    assert module.name == PLAIN
    assert module.options["password"] == 'a;"b='
    assert module.users == {"alice": "x y", "bob": "z"}
    assert "x y" not in repr(module)


@pytest.mark.parametrize(
    "text",
    [
        "",
        PLAIN,
        f"{PLAIN} required",
        f'{PLAIN} required password="secret"',
        f'{PLAIN} maybe password="secret";',
        f'{PLAIN} required password "secret";',
        f'{PLAIN} required password="secret',
        f'{PLAIN} required password="secret"; {PLAIN} required;',
    ],
)
def test_bad_texts_are_refused_without_their_secrets(text: str) -> None:
    with pytest.raises(JaasError) as caught:
        parse_jaas(text)
    assert "secret" not in str(caught.value)


def test_plain() -> None:
    assert parse_plain(plain_message("älice", "p w")) == ("älice", "p w")
    assert parse_plain(b"alice\0alice\0x").user == "alice"


@pytest.mark.parametrize("message", [b"", b"\0\0", b"\0a\0", b"\0\0b", b"a\0b\0c", b"\0a\0b\0c", b"\xff\0a\0b"])
def test_bad_plain_messages(message: bytes) -> None:
    with pytest.raises(SaslError):
        parse_plain(message)


def test_bearer() -> None:
    assert parse_bearer(bearer_message("aa.bb.cc")) == ("aa.bb.cc", "")
    login = parse_bearer(b"n,a=alice,\x01auth=bearer t\x01traceId=1\x01\x01")
    assert login == ("t", "alice")


@pytest.mark.parametrize(
    "message", [b"", b"\x01", b"n,,\x01\x01", b"n,,\x01auth=Basic x\x01\x01", b"y,,\x01auth=Bearer t\x01\x01", b"n,,"]
)
def test_bad_bearer_messages(message: bytes) -> None:
    with pytest.raises(SaslError):
        parse_bearer(message)
