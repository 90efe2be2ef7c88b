"""Logins with delegation tokens: the SCRAM exchange of a client against the credential of a token."""

from base64 import b64encode

import pytest

from sskafka.broker.token_credentials import TokenCredentials
from sskafka.metadata.delegation_tokens import token_hmac
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import DelegationTokenRecord, RemoveDelegationTokenRecord
from sskafka.model.security.errors import SaslError
from sskafka.model.security.scram import SCRAM_MECHANISMS, ScramClientExchange, ScramServerExchange

KEY = "secret"


def image_with(*tokens: DelegationTokenRecord) -> ClusterImage:
    image = ClusterImage()
    for token in tokens:
        image.replay(token, MetadataDelta())
    return image


def token(token_id: str = "t1", expires_ms: int = 100) -> DelegationTokenRecord:
    return DelegationTokenRecord("User:alice", "User:alice", [], 0, 1000, expires_ms, token_id)


def log_in(credentials: TokenCredentials, mechanism: str, token_id: str, password: str) -> ScramServerExchange:
    scram = SCRAM_MECHANISMS[mechanism]

    def find(user: str, is_token: bool) -> object:
        assert is_token
        return credentials.find(scram, user)

    server = ScramServerExchange(scram, find, "server", b"decoy")  # type: ignore[arg-type]
    client = ScramClientExchange(scram, token_id, "client", is_token=True)
    salt, iterations = client.challenge(server.first(client.first()))
    client.verify(server.final(client.prove(scram.salted_password(password, salt, iterations))))
    return server


@pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS)
def test_who_has_the_hmac_is_the_owner_until_the_token_expires(mechanism: str) -> None:
    image = image_with(token())
    credentials = TokenCredentials(KEY, lambda: image)
    password = b64encode(token_hmac(KEY, "t1")).decode()
    server = log_in(credentials, mechanism, "t1", password)
    assert (server.principal, server.expires_ms, server.is_token) == ("User:alice", 100, True)
    image.replay(token(expires_ms=5000), MetadataDelta())
    assert log_in(credentials, mechanism, "t1", password).expires_ms == 1000, "never later than its longest life"
    image.replay(RemoveDelegationTokenRecord("t1"), MetadataDelta())
    with pytest.raises(SaslError):
        log_in(credentials, mechanism, "t1", password)


def test_wrong_hmacs_and_unknown_tokens_are_refused() -> None:
    image = image_with(token())
    credentials = TokenCredentials(KEY, lambda: image)
    for token_id, key in (("t1", "another"), ("t2", KEY)):
        with pytest.raises(SaslError, match="invalid credentials"):
            log_in(credentials, "SCRAM-SHA-256", token_id, b64encode(token_hmac(key, token_id)).decode())


def test_without_a_key_there_are_no_tokens() -> None:
    assert TokenCredentials(None, lambda: image_with(token())).find(SCRAM_MECHANISMS["SCRAM-SHA-256"], "t1") is None
