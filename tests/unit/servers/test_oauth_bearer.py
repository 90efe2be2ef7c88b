"""OAUTHBEARER tokens: how long the session of a valid one lasts, and what the provider of their keys may answer."""

import base64
import json
import socket
import threading
import time
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from sskafka.model.security.errors import SaslError
from sskafka.servers.kafka.security.oauth_bearer import OAuthBearerMechanism, OAuthKeys

SKEW_S = 30
KEY = ec.generate_private_key(ec.SECP256R1())


@pytest.fixture
def mechanism(tmp_path: Path) -> OAuthBearerMechanism:
    public = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(KEY.public_key()))
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": [{**public, "kid": "k", "alg": "ES256"}]}))
    keys = OAuthKeys(file.as_uri(), 60_000)
    keys.refresh()
    return OAuthBearerMechanism(keys, "issuer", ["kafka"], SKEW_S, "sub", 0)


def token(expires_s: int) -> str:
    claims = {"sub": "alice", "iss": "issuer", "aud": "kafka", "exp": expires_s}
    return jwt.encode(claims, KEY, algorithm="ES256", headers={"kid": "k"})


def test_a_session_ends_with_its_token(mechanism: OAuthBearerMechanism) -> None:
    expires_s = int(time.time()) + 60
    assert mechanism.check(token(expires_s)).expires_ms == expires_s * 1000


def test_clock_skew_prolongs_a_token_that_is_expired_by_now(mechanism: OAuthBearerMechanism) -> None:
    now_s = int(time.time())
    assert mechanism.check(token(now_s - 5)).expires_ms == (now_s - 5 + SKEW_S) * 1000
    with pytest.raises(SaslError, match="expired"):
        mechanism.check(token(now_s - SKEW_S - 5))


DEEP = "[" * 100_000


@pytest.mark.parametrize("answer", ["null", "[]", '"x"', "3", "{}", '{"keys": 1}', '{"keys": [1]}', "{", DEEP])
def test_a_key_set_that_cannot_be_used_keeps_the_old_keys(
    tmp_path: Path, mechanism: OAuthBearerMechanism, answer: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "keys.json").write_text(answer)
    mechanism._keys.refresh()
    assert "the OAuth key set cannot be read from file:" in caplog.text
    assert mechanism.check(token(int(time.time()) + 60)).principal == "User:alice"


def test_a_key_with_an_unusual_id_keeps_the_old_keys(tmp_path: Path, mechanism: OAuthBearerMechanism) -> None:
    (key,) = json.loads((tmp_path / "keys.json").read_text())["keys"]
    (tmp_path / "keys.json").write_text(json.dumps({"keys": [{**key, "kid": ["k"]}]}))
    mechanism._keys.refresh()
    assert mechanism.check(token(int(time.time()) + 60)).principal == "User:alice"


def test_a_provider_that_does_not_speak_http_keeps_the_old_keys(mechanism: OAuthBearerMechanism) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        answering = threading.Thread(target=_answer_nonsense, args=(server,))
        answering.start()
        mechanism._keys._url = f"http://127.0.0.1:{server.getsockname()[1]}/keys"
        mechanism._keys.refresh()
        answering.join()
    assert mechanism.check(token(int(time.time()) + 60)).principal == "User:alice"


def _answer_nonsense(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(65536)
        connection.sendall(b"nonsense\r\n\r\n")


def test_a_token_of_nested_lists_is_malformed(mechanism: OAuthBearerMechanism) -> None:
    header = base64.urlsafe_b64encode(DEEP.encode()).decode().rstrip("=")
    with pytest.raises(SaslError):
        mechanism.check(f"{header}.e30.AA")
