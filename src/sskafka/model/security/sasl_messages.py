"""The messages of the SASL mechanisms PLAIN (RFC 4616) and OAUTHBEARER (RFC 7628), for clients and servers.

PLAIN          [authzid] NUL authcid NUL password
OAUTHBEARER    n,[a=authzid],^A auth=Bearer TOKEN ^A [key=value ^A ...] ^A        ^A is the byte 1
"""

import re
from typing import NamedTuple

from sskafka.model.security.errors import SaslError

_SEPARATOR = b"\x01"
_OAUTH = re.compile(rb"n,(?:a=(?P<authzid>[\x21-\x2b\x2d-\x7e]+))?,\x01(?P<pairs>(?:[A-Za-z]+=[^\x01]*\x01)+)\x01")
_BEARER = re.compile(rb"bearer +([-._~+/A-Za-z0-9]+=*) *", re.IGNORECASE)
OAUTH_ABORT = _SEPARATOR
"""Message with which a client confirms that its token is invalid, so that the server can end the exchange."""


class PlainLogin(NamedTuple):
    user: str
    password: str


class BearerLogin(NamedTuple):
    token: str
    authorization_id: str


def plain_message(user: str, password: str) -> bytes:
    return f"\0{user}\0{password}".encode()


def parse_plain(message: bytes) -> PlainLogin:
    """Return user and password; raise SaslError if they are missing or differ from the authorization id."""
    try:
        parts = message.decode().split("\0")
    except UnicodeDecodeError:
        raise SaslError("Invalid SASL/PLAIN response: not UTF-8") from None
    if len(parts) != 3:
        raise SaslError(f"Invalid SASL/PLAIN response: expected 3 tokens, got {min(len(parts), 4)}")
    authorization_id, user, password = parts
    if not user:
        raise SaslError("Authentication failed: username not specified")
    if not password:
        raise SaslError("Authentication failed: password not specified")
    if authorization_id and authorization_id != user:
        raise SaslError("Authentication failed: Client requested an authorization id that is different from username")
    return PlainLogin(user, password)


def bearer_message(token: str) -> bytes:
    return b"n,,\x01auth=Bearer " + token.encode() + b"\x01\x01"


def parse_bearer(message: bytes) -> BearerLogin:
    match = _OAUTH.fullmatch(message)
    if match is None:
        raise SaslError("Invalid OAUTHBEARER client first message")
    pairs = dict(pair.split(b"=", 1) for pair in match["pairs"].split(_SEPARATOR) if pair)
    bearer = _BEARER.fullmatch(pairs.get(b"auth", b""))
    if bearer is None:
        raise SaslError("Invalid OAUTHBEARER client first message: 'auth' has no bearer token")
    return BearerLogin(bearer[1].decode(), (match["authzid"] or b"").decode())
