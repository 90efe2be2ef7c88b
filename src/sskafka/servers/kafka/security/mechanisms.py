"""The SASL mechanisms of a listener: PLAIN and SCRAM. OAUTHBEARER is in oauth_bearer.py.

A mechanism begins an exchange for each login. An exchange takes the messages of the client one after the other; it
raises SaslError if the login has failed. Nothing here is slow: SCRAM servers need no PBKDF2. Long messages are refused;
only the tokens of OAUTHBEARER are long.
"""

import hmac
import os
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from sskafka.model.security.errors import SaslError
from sskafka.model.security.sasl_messages import parse_plain
from sskafka.model.security.scram import FindCredential, ScramMechanism, ScramServerExchange

NONCE_BYTES = 24
MESSAGE_BYTES_MAX = 16 * 1024
"""Maximum size of a message of PLAIN and SCRAM: a name, a password or proof, and extensions."""


class SaslStep(NamedTuple):
    """The answer to one message of the client."""

    answer: bytes
    principal: str | None = None
    """Set by the last step: who the client is."""
    expires_ms: int | None = None
    """When the credential expires, in milliseconds since 1970; None: never."""
    is_token: bool = False
    """Whether the credential is a delegation token."""


class SaslExchange(Protocol):
    def evaluate(self, message: bytes) -> SaslStep: ...


class SaslMechanism(Protocol):
    max_reauth_ms: int
    """Limit of a session, after which the client must authenticate again; 0: none."""

    def begin(self) -> SaslExchange: ...


class PlainMechanism:
    """Authenticates the users of `listener.name.X.plain.sasl.jaas.config`."""

    def __init__(self, users: Callable[[], Mapping[str, str]], max_reauth_ms: int) -> None:
        self.max_reauth_ms = max_reauth_ms
        self._users = users

    def begin(self) -> SaslExchange:
        return self

    def evaluate(self, message: bytes) -> SaslStep:
        _check_size(message)
        login = parse_plain(message)
        password = self._users().get(login.user)
        is_right = hmac.compare_digest((password or "").encode(), login.password.encode())
        if password is None or not is_right:
            raise SaslError("Authentication failed: Invalid username or password", login.user)
        return SaslStep(b"", f"User:{login.user}")


class ScramServerMechanism:
    """Authenticates users whose credentials are in the metadata log, and delegation tokens."""

    def __init__(self, mechanism: ScramMechanism, find: FindCredential, max_reauth_ms: int) -> None:
        self.max_reauth_ms = max_reauth_ms
        self._mechanism = mechanism
        self._find = find
        self._decoy_key = os.urandom(32)

    def begin(self) -> SaslExchange:
        nonce = b64encode(os.urandom(NONCE_BYTES)).decode()
        return _ScramSteps(ScramServerExchange(self._mechanism, self._find, nonce, self._decoy_key))


class _ScramSteps:
    def __init__(self, exchange: ScramServerExchange) -> None:
        self._exchange = exchange
        self._has_begun = False

    def evaluate(self, message: bytes) -> SaslStep:
        _check_size(message)
        if not self._has_begun:
            self._has_begun = True
            return SaslStep(self._exchange.first(message))
        exchange = self._exchange
        try:
            answer = exchange.final(message)
        except SaslError as error:
            raise SaslError(str(error), exchange.user) from None
        principal = exchange.principal or f"User:{exchange.user}"
        return SaslStep(answer, principal, exchange.expires_ms, exchange.is_token)


def _check_size(message: bytes) -> None:
    if len(message) > MESSAGE_BYTES_MAX:
        text = f"the message has {len(message)} bytes, more than {MESSAGE_BYTES_MAX}"
        raise SaslError(f"Authentication failed: {text}")
