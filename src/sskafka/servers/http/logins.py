"""Logins of HTTP clients: the broker checks user and password, or a token, as a SASL login (servers/local/logins.py).

Every request is checked: a deleted user or a changed password counts at once. PBKDF2, the slow part of SCRAM, runs here
in a thread, and only once for each user and password: the result of a successful login is kept.
"""

import asyncio
import hmac
import os
import re
from base64 import b64decode, b64encode
from collections import OrderedDict

from sskafka.client.sasl import PlainLoginExchange, SaslLogin, ScramLogin
from sskafka.model.security.errors import SaslError
from sskafka.model.security.mechanisms import OAUTHBEARER, PLAIN
from sskafka.model.security.sasl_messages import OAUTH_ABORT, bearer_message
from sskafka.servers.local.link import LocalLink

KEPT_LOGINS_MAX = 1000
NEW_LOGINS_MAX = 4
"""Logins that may compute PBKDF2 at the same time."""
_TOKEN = re.compile(r"[-._~+/A-Za-z0-9]+=*")


class LoginRefusedError(Exception):
    """The credentials are wrong. The text is for the log of the broker, not for the client."""

    user = ""
    """The name that the client has given."""


class HttpLogins:
    def __init__(self, link: LocalLink, mechanisms: tuple[str, ...]) -> None:
        self._link = link
        self.password_mechanisms = tuple(name for name in mechanisms if name != OAUTHBEARER)
        self.takes_tokens = OAUTHBEARER in mechanisms
        self._kept: OrderedDict[tuple[str, str, bytes], SaslLogin] = OrderedDict()
        self._key = os.urandom(32)
        self._turns = asyncio.Semaphore(NEW_LOGINS_MAX)

    async def by_password(self, user: str, password: str) -> str:
        """Return the principal, by the first mechanism that accepts the password. Raise LoginRefusedError."""
        refusal = LoginRefusedError("no mechanism takes passwords")
        for mechanism in self.password_mechanisms:
            try:
                return await self._by_mechanism(mechanism, user, password)
            except LoginRefusedError as error:
                refusal = error
        refusal.user = user
        raise refusal

    async def by_token(self, token: str) -> str:
        """Return the principal that the token names. Raise LoginRefusedError."""
        if not self.takes_tokens or not _TOKEN.fullmatch(token):
            raise LoginRefusedError("the server accepts no tokens, or the text is not a token")
        exchange = _LinkedExchange(self._link, OAUTHBEARER)
        await exchange(bearer_message(token))
        if exchange.principal is None:
            await exchange(OAUTH_ABORT)  # the answer is the reason
        return exchange.checked_principal()

    async def _by_mechanism(self, mechanism: str, user: str, password: str) -> str:
        key = (mechanism, user, hmac.digest(self._key, password.encode(), "sha256"))
        login = self._kept.get(key)
        if login is not None:
            self._kept.move_to_end(key)
            return await self._run(mechanism, login)
        login = (PlainLoginExchange if mechanism == PLAIN else ScramLogin)(user, password, mechanism)
        async with self._turns:
            principal = await self._run(mechanism, login)
        self._kept[key] = login
        while len(self._kept) > KEPT_LOGINS_MAX:
            self._kept.popitem(last=False)
        return principal

    async def _run(self, mechanism: str, login: SaslLogin) -> str:
        exchange = _LinkedExchange(self._link, mechanism)
        try:
            await login.run(exchange)
        except SaslError as error:
            raise LoginRefusedError(str(error)) from None
        return exchange.checked_principal()


class _LinkedExchange:
    """Sends the messages of one login to the broker."""

    def __init__(self, link: LocalLink, mechanism: str) -> None:
        self._link = link
        self._mechanism = mechanism
        self._number = 0
        self.principal: str | None = None

    async def __call__(self, message: bytes) -> bytes:
        text = b64encode(message).decode()
        step = await self._link.ask("login_step", mechanism=self._mechanism, exchange=self._number, message=text)
        if "error" in step:
            raise LoginRefusedError(step["error"])
        self._number, self.principal = step["exchange"], step["principal"]
        return b64decode(step["answer"])

    def checked_principal(self) -> str:
        if self.principal is None:
            raise LoginRefusedError("the login is not complete")
        return self.principal
