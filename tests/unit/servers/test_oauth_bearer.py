"""OAUTHBEARER tokens: how long the session of a valid one lasts."""

import json
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
