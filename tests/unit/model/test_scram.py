"""SCRAM: the example of RFC 7677, both sides against each other, and what servers and clients refuse."""

from base64 import b64encode

import pytest

from sskafka.model.security.errors import SaslError
from sskafka.model.security.scram import (
    SCRAM_MECHANISMS,
    ScramClientExchange,
    ScramCredential,
    ScramMechanism,
    ScramServerExchange,
)

SALT = b"0123456789abcdef"
SHA256 = SCRAM_MECHANISMS["SCRAM-SHA-256"]


def credential(mechanism: ScramMechanism, password: str = "pencil") -> ScramCredential:
    return ScramCredential.of_salted_password(mechanism, mechanism.salted_password(password, SALT, 4096), SALT, 4096)


def server(mechanism: ScramMechanism = SHA256, nonce: str = "server-nonce") -> ScramServerExchange:
    known = {"user": credential(mechanism), "a=b,c": credential(mechanism)}
    return ScramServerExchange(mechanism, lambda user, is_token: None if is_token else known.get(user), nonce, b"key")


def test_the_example_of_rfc_7677() -> None:
    client = ScramClientExchange(SHA256, "user", "rOprNGfwEbeRWgbNEkqO")
    assert client.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    salt, iterations = client.challenge(f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode())
    proof = client.prove(SHA256.salted_password("pencil", salt, iterations))
    assert proof == f"c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    client.verify(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


@pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS.values(), ids=lambda item: item.name)
@pytest.mark.parametrize("user", ["user", "a=b,c"])
def test_both_sides_agree(mechanism: ScramMechanism, user: str) -> None:
    client, serving = ScramClientExchange(mechanism, user, "client-nonce"), server(mechanism)
    salt, iterations = client.challenge(serving.first(client.first()))
    client.verify(serving.final(client.prove(mechanism.salted_password("pencil", salt, iterations))))
    assert serving.user == user


def failure(user: str, password: str) -> str:
    client, serving = ScramClientExchange(SHA256, user, "client-nonce"), server()
    salt, iterations = client.challenge(serving.first(client.first()))
    with pytest.raises(SaslError) as caught:
        serving.final(client.prove(SHA256.salted_password(password, salt, iterations)))
    return str(caught.value)


def test_an_unknown_user_fails_as_a_wrong_password_does() -> None:
    assert failure("nobody", "pencil") == failure("user", "wrong")


def test_the_salt_of_an_unknown_user_does_not_change_from_login_to_login() -> None:
    first, second = (server(nonce=nonce).first(b"n,,n=nobody,r=x") for nonce in ("a", "b"))
    assert first.split(b",")[1:] == second.split(b",")[1:]


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\xff",
        b"p=tls-unique,,n=user,r=x",
        b"n,,n=user",
        b"n,,r=x,n=user",
        b"n,a=root,n=user,r=x",
        b"n,,n=us=er,r=x",
        b"n,,n=,r=x",
    ],
)
def test_servers_refuse_bad_first_messages(message: bytes) -> None:
    with pytest.raises(SaslError):
        server().first(message)


@pytest.mark.parametrize(
    "forge",
    [
        lambda final: final.replace(b"server-nonce", b"other-nonce!"),
        lambda final: final.replace(b"c=biws", b"c=" + b64encode(b"y,,")),
        lambda final: final[: final.index(b",p=")],
        lambda final: final[:-8],
        lambda final: final[: final.index(b",p=")] + b",p=AAAA",
        lambda final: b"",
    ],
)
def test_servers_refuse_forged_final_messages(forge: object) -> None:
    client, serving = ScramClientExchange(SHA256, "user", "client-nonce"), server()
    salt, iterations = client.challenge(serving.first(client.first()))
    final = client.prove(SHA256.salted_password("pencil", salt, iterations))
    with pytest.raises(SaslError):
        serving.final(forge(final))  # type: ignore[operator]


@pytest.mark.parametrize(
    "challenge",
    [
        b"r=client-nonce,s=QUJD,i=4096",
        b"r=other,s=QUJD,i=4096",
        b"r=client-nonce-more,s=QUJD,i=1",
        b"r=client-nonce-more,s=QUJD,i=999999999",
        b"r=client-nonce-more,s=!,i=4096",
        b"nonsense",
    ],
)
def test_clients_refuse_challenges_that_break_the_protocol(challenge: bytes) -> None:
    client = ScramClientExchange(SHA256, "user", "client-nonce")
    with pytest.raises(SaslError):
        client.challenge(challenge)


def test_clients_refuse_servers_that_do_not_know_the_password() -> None:
    client, serving = ScramClientExchange(SHA256, "user", "client-nonce"), server()
    salt, iterations = client.challenge(serving.first(client.first()))
    client.prove(SHA256.salted_password("pencil", salt, iterations))
    for answer in (b"v=" + b64encode(bytes(32)), b"e=other-error", b"v=", b""):
        with pytest.raises(SaslError):
            client.verify(answer)


def test_a_client_may_repeat_its_nonce_as_older_librdkafka_does() -> None:
    client, serving = ScramClientExchange(SHA256, "user", "client-nonce"), server()
    salt, iterations = client.challenge(serving.first(client.first()))
    client._nonce = f"client-nonce{client._nonce}"
    client.verify(serving.final(client.prove(SHA256.salted_password("pencil", salt, iterations))))
