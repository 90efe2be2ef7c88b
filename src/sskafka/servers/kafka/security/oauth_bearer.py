"""SASL OAUTHBEARER (RFC 7628): JSON Web Tokens, checked with the keys of an OAuth provider. Needs the extra `oauth`.

A token must be signed by a key of the key set with an asymmetric algorithm, and have the expected issuer, one of the
expected audiences, a subject and an expiry time. Tokens without a signature are refused. The session ends with the
token. An invalid token is answered with an error in JSON. The login fails when the client has confirmed that error.
"""

import json
import logging
import time
from collections.abc import Sequence
from typing import Any
from urllib.request import urlopen

from sskafka.model.extras import install_extra
from sskafka.model.security.errors import SaslError
from sskafka.model.security.sasl_messages import parse_bearer
from sskafka.servers.kafka.security.mechanisms import SaslExchange, SaslStep

_log = logging.getLogger(__name__)

ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
FETCH_TIMEOUT_S = 10
KEY_SET_BYTES_MAX = 1024 * 1024
EARLY_REFRESH_S = 10
"""Minimum time between two reads of the key set, which is read again when a token names an unknown key."""
URL_SCHEMES = ("https://", "http://", "file:")


class MissingPackageError(ImportError):
    """OAUTHBEARER is enabled, but the package that checks tokens is not installed."""


class OAuthKeys:
    """The key set of a provider (JWKS). `refresh` blocks, so it is called in a thread, except for files at startup."""

    def __init__(self, url: str, refresh_ms: int) -> None:
        try:
            import jwt  # noqa: PLC0415  optional
        except ImportError:
            raise MissingPackageError(f"OAUTHBEARER needs the package pyjwt: {install_extra('oauth')}") from None
        if not url.startswith(URL_SCHEMES):
            raise MissingPackageError(f"{url!r} is no https:, http: or file: URL")
        self._jwt = jwt
        self._url = url
        self._refresh_s = refresh_ms / 1000
        self._read_s = -1e9
        self._keys: dict[str | None, Any] = {}
        self._is_missed = False

    def find(self, key_id: str | None) -> Any:
        """Return the key with this id, or the only key if the token names none; None if the key is unknown."""
        key = self._keys.get(key_id)
        if key is None and key_id is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        if key is None:
            self._is_missed = True
        return key

    def maybe_refresh(self) -> None:
        age_s = time.monotonic() - self._read_s
        if age_s >= self._refresh_s or (self._is_missed and age_s >= EARLY_REFRESH_S):
            self.refresh()

    def refresh(self) -> None:
        """Read the key set; keep the old one if that fails."""
        self._read_s = time.monotonic()
        self._is_missed = False
        try:
            with urlopen(self._url, timeout=FETCH_TIMEOUT_S) as response:
                text = response.read(KEY_SET_BYTES_MAX)
            self._keys = {key.key_id: key for key in self._jwt.PyJWKSet.from_dict(json.loads(text)).keys}
        except Exception as error:  # boundary: the provider may answer anything
            _log.error("the OAuth key set cannot be read from %s: %s", self._url, error)
            self._read_s = time.monotonic() - self._refresh_s + EARLY_REFRESH_S


class OAuthBearerMechanism:
    def __init__(
        self,
        keys: OAuthKeys,
        issuer: str,
        audiences: Sequence[str],
        clock_skew_s: int,
        subject_claim: str,
        max_reauth_ms: int,
    ) -> None:
        import jwt  # noqa: PLC0415  optional, checked by OAuthKeys

        self.max_reauth_ms = max_reauth_ms
        self._jwt = jwt
        self._keys = keys
        self._issuer = issuer
        self._audiences = list(audiences)
        self._clock_skew_s = clock_skew_s
        self._subject_claim = subject_claim

    def begin(self) -> SaslExchange:
        return _BearerSteps(self)

    def check(self, token: str) -> SaslStep:
        """Return the last step of the login. Raise SaslError, with a reason for the client, if the token is invalid."""
        jwt = self._jwt
        try:
            header = jwt.get_unverified_header(token)
            key = self._keys.find(header.get("kid"))
            if key is None:
                raise SaslError("the key of the token is not known")
            claims: dict[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=ALGORITHMS,
                audience=self._audiences,
                issuer=self._issuer,
                leeway=self._clock_skew_s,
                options={"require": ["exp", "iss", "aud", self._subject_claim]},
            )
        except jwt.PyJWTError as error:
            raise SaslError(str(error)) from None
        except (TypeError, ValueError, RecursionError):
            raise SaslError("the token is malformed") from None
        subject = claims[self._subject_claim]
        if not isinstance(subject, str) or not subject:
            raise SaslError(f"the claim {self._subject_claim} is no text")
        return SaslStep(b"", f"User:{subject}", self._session_end_ms(int(claims["exp"]) * 1000))

    def _session_end_ms(self, expires_ms: int) -> int:
        """Return when the session ends: with the token. Clock skew prolongs only a token that is expired by now."""
        is_expired = expires_ms <= time.time() * 1000
        return expires_ms + self._clock_skew_s * 1000 if is_expired else expires_ms


class _BearerSteps:
    def __init__(self, mechanism: OAuthBearerMechanism) -> None:
        self._mechanism = mechanism
        self._failure = ""

    def evaluate(self, message: bytes) -> SaslStep:
        if self._failure:
            raise SaslError(self._failure)
        login = parse_bearer(message)
        try:
            step = self._mechanism.check(login.token)
            if login.authorization_id and f"User:{login.authorization_id}" != step.principal:
                raise SaslError("the authorization id differs from the subject of the token")
        except SaslError as error:
            self._failure = f"Authentication failed: {error}"
            return SaslStep(json.dumps({"status": "invalid_token"}).encode())
        return step
