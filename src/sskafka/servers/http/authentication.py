"""Find out who sends a request, before any route handles it: by a certificate, by a login, or an anonymous client.

    PLAINTEXT            User:ANONYMOUS
    SSL                  the certificate of the client, or User:ANONYMOUS without one
    SASL_...             basic: user and password of SCRAM or PLAIN; bearer: a token of OAUTHBEARER
                         without either: 401

The health checks are open to everybody: they say nothing but that the broker is up, and who leads. A wrong login is
answered after `connection.failed.authentication.delay.ms`. The answer does not tell what was wrong with it.
"""

import asyncio
import binascii
from base64 import b64decode
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from sskafka.model.acl import ANONYMOUS
from sskafka.servers.http.caller import host_of, set_caller
from sskafka.servers.http.configuration import HttpSecurity
from sskafka.servers.http.connections import CERTIFICATE_USER, HEALTH_CHECKS
from sskafka.servers.http.logins import HttpLogins, LoginRefusedError
from sskafka.servers.http.problems import FORBIDDEN, UNAUTHORIZED, problem
from sskafka.servers.local.link import BrokerGoneError, LocalLink, RefusedError

REALM = 'realm="sskafka"'


class Authentication:
    def __init__(self, app: ASGIApp, security: HttpSecurity, link: LocalLink) -> None:
        self._app = app
        self._link = link
        self._delay_s = security.failed_authentication_delay_ms / 1000
        self._logins = HttpLogins(link, security.mechanisms)
        self._needs_login = bool(security.mechanisms)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif not self._needs_login or scope["path"] in HEALTH_CHECKS:
            await self._serve_by_certificate(scope, receive, send)
        else:
            await self._serve_by_login(scope, receive, send)

    async def _serve_by_certificate(self, scope: Scope, receive: Receive, send: Send) -> None:
        user = scope.get("state", {}).get(CERTIFICATE_USER, "")
        if user is None and scope["path"] not in HEALTH_CHECKS:
            text = "no rule of ssl.principal.mapping.rules matches the certificate of this client"
            await problem(FORBIDDEN, text)(scope, receive, send)
            return
        set_caller(scope, f"User:{user}" if user else ANONYMOUS)
        await self._app(scope, receive, send)

    async def _serve_by_login(self, scope: Scope, receive: Receive, send: Send) -> None:
        header = next((value for name, value in scope["headers"] if name == b"authorization"), None)
        if header is None:
            await self._refuse("this server needs a login", "", scope, receive, send)
            return
        try:
            principal = await self._principal(header)
        except LoginRefusedError as error:
            await self._refuse_login(error, scope, receive, send)
        except (BrokerGoneError, RefusedError):
            await problem(503, "the broker cannot check the login now")(scope, receive, send)
        else:
            set_caller(scope, principal)
            await self._app(scope, receive, send)

    async def _principal(self, header: bytes) -> str:
        scheme, _, credentials = header.decode("latin-1").strip().partition(" ")
        match scheme.lower():
            case "basic" if self._logins.password_mechanisms:
                return await self._logins.by_password(*_user_and_password(credentials))
            case "bearer" if self._logins.takes_tokens:
                return await self._logins.by_token(credentials.strip())
        raise LoginRefusedError(f"the authentication scheme {scheme[:20]!r} is not supported")

    async def _refuse_login(self, error: LoginRefusedError, scope: Scope, receive: Receive, send: Send) -> None:
        await self._link.ask("login_failed", host=host_of(scope), user=error.user, reason=str(error))
        await asyncio.sleep(self._delay_s)
        await self._refuse("the login is not valid", ', error="invalid_token"', scope, receive, send)

    async def _refuse(self, detail: str, error: str, scope: Scope, receive: Receive, send: Send) -> None:
        response: Any = problem(UNAUTHORIZED, detail)
        if self._logins.password_mechanisms:
            response.headers.append("WWW-Authenticate", f'Basic {REALM}, charset="UTF-8"')
        if self._logins.takes_tokens:
            response.headers.append("WWW-Authenticate", f"Bearer {REALM}{error}")
        await response(scope, receive, send)


def _user_and_password(credentials: str) -> tuple[str, str]:
    try:
        user, colon, password = b64decode(credentials, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        raise LoginRefusedError("the header is not base64 of user:password") from None
    if not colon or not user:
        raise LoginRefusedError("the header has no user:password")
    return user, password
