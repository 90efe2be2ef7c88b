"""SASL logins of a client: PLAIN, SCRAM and OAUTHBEARER over SaslHandshake and SaslAuthenticate."""

import asyncio
import json
import os
from base64 import b64encode
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias
from urllib.parse import urlencode

from sskafka.client.errors import AuthenticationFailedError
from sskafka.model.errors import ErrorCode
from sskafka.model.security.errors import SaslError
from sskafka.model.security.mechanisms import OAUTHBEARER, PLAIN
from sskafka.model.security.sasl_messages import OAUTH_ABORT, bearer_message, plain_message
from sskafka.model.security.scram import SCRAM_MECHANISMS, ScramClientExchange
from sskafka.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from sskafka.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from sskafka.wire.schema import Message

NONCE_BYTES = 24
TOKEN_TIMEOUT_S = 10
TOKEN_BYTES_MAX = 1024 * 1024

Exchange: TypeAlias = Callable[[bytes], Awaitable[bytes]]
"""Sends a message of the login and returns the answer; raises AuthenticationFailedError if the broker refuses it."""


class SaslLogin(Protocol):
    mechanism: str

    async def run(self, exchange: Exchange) -> None:
        """Exchange messages until the login is complete; raise SaslError if the broker violates the protocol."""
        ...


class RequestSender(Protocol):
    """A connection, as a login uses it."""

    async def request(self, message: Message, response_class: type, *, version: int | None = None) -> object: ...


class PlainLoginExchange:
    def __init__(self, user: str, password: str, mechanism: str = PLAIN, tokenauth: str = "") -> None:
        self.mechanism = mechanism
        self._message = plain_message(user, password)

    async def run(self, exchange: Exchange) -> None:
        await exchange(self._message)


class ScramLogin:
    """Remembers the salted password, which takes milliseconds to compute, for the next login."""

    def __init__(self, user: str, password: str, mechanism: str, tokenauth: str = "") -> None:
        self.mechanism = mechanism
        self._scram = SCRAM_MECHANISMS[mechanism]
        self._user = user
        self._password = password
        self._is_token = tokenauth.lower() == "true"
        self._salted: dict[tuple[bytes, int], bytes] = {}

    async def run(self, exchange: Exchange) -> None:
        nonce = b64encode(os.urandom(NONCE_BYTES)).decode()
        scram = ScramClientExchange(self._scram, self._user, nonce, is_token=self._is_token)
        challenge = scram.challenge(await exchange(scram.first()))
        if challenge not in self._salted:
            salted = await asyncio.to_thread(self._scram.salted_password, self._password, *challenge)
            self._salted = {challenge: salted}
        scram.verify(await exchange(scram.prove(self._salted[challenge])))


class BearerTokenLogin:
    """A token from a file, or from an OAuth provider by the grant of client credentials."""

    mechanism = OAUTHBEARER

    def __init__(self, client_id: str, client_secret: str, url: str, scope: str) -> None:
        self._client_id = client_id
        self._client_secret = client_secret
        self._url = url
        self._scope = scope

    async def run(self, exchange: Exchange) -> None:
        token = await asyncio.to_thread(self._fetch)
        refusal = await exchange(bearer_message(token))
        if refusal:
            await exchange(OAUTH_ABORT)  # the broker answers with its reason, which is raised
            raise SaslError(f"the broker refused the token: {refusal.decode(errors='replace')}")

    def _fetch(self) -> str:
        from urllib.request import Request, urlopen  # noqa: PLC0415  slow to import, needed here alone

        request = Request(self._url)
        if not self._url.startswith("file:"):
            scope = {"scope": self._scope} if self._scope else {}
            request.data = urlencode({"grant_type": "client_credentials", **scope}).encode()
            login = b64encode(f"{self._client_id}:{self._client_secret}".encode()).decode()
            request.add_header("Authorization", f"Basic {login}")
        try:
            with urlopen(request, timeout=TOKEN_TIMEOUT_S) as response:
                text = response.read(TOKEN_BYTES_MAX).decode()
            return text.strip() if self._url.startswith("file:") else str(json.loads(text)["access_token"])
        except (OSError, ValueError, KeyError) as error:
            raise SaslError(f"no token from {self._url}: {error}") from None


SASL_LOGINS: dict[str, Callable[[str, str, str, str], SaslLogin]] = {
    PLAIN: PlainLoginExchange,
    **dict.fromkeys(SCRAM_MECHANISMS, ScramLogin),
    OAUTHBEARER: BearerTokenLogin,
}


async def log_in(connection: RequestSender, login: SaslLogin, address: str) -> int:
    """Authenticate a connection. Return the lifetime of the session in milliseconds, 0 for no limit.

    Raise AuthenticationFailedError if the broker refuses the login, or does not follow the protocol."""
    handshake = await connection.request(SaslHandshakeRequest(login.mechanism), SaslHandshakeResponse)
    assert isinstance(handshake, SaslHandshakeResponse)
    if handshake.error_code != ErrorCode.NONE:
        offered = ", ".join(handshake.mechanisms) or "no login: its security.protocol is not a SASL protocol"
        raise AuthenticationFailedError(f"{address} does not accept {login.mechanism}; it accepts {offered}")
    lifetime_ms = 0

    async def exchange(message: bytes) -> bytes:
        nonlocal lifetime_ms
        answer = await connection.request(SaslAuthenticateRequest(message), SaslAuthenticateResponse)
        assert isinstance(answer, SaslAuthenticateResponse)
        if answer.error_code != ErrorCode.NONE:
            raise AuthenticationFailedError(f"{address}: {answer.error_message or ErrorCode(answer.error_code).name}")
        lifetime_ms = answer.session_lifetime_ms
        return bytes(answer.auth_bytes)

    try:
        await login.run(exchange)
    except SaslError as error:
        raise AuthenticationFailedError(f"{address}: {error}") from None
    return lifetime_ms
