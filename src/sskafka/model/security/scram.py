"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), both sides, as pure exchanges of messages.

    client                                                server
    n,,n=USER,r=CLIENT_NONCE                   ->
                                               <-         r=CLIENT_NONCE SERVER_NONCE,s=SALT,i=ITERATIONS
    c=biws,r=BOTH_NONCES,p=PROOF               ->
                                               <-         v=SERVER_SIGNATURE

    salted password = PBKDF2(password, salt, iterations)            only clients and tools compute this: it is slow
    client key      = HMAC(salted password, "Client Key")
    stored key      = H(client key)                                 stored in the metadata log instead of the password,
    server key      = HMAC(salted password, "Server Key")           with this key, the salt and the iterations
    proof           = client key XOR HMAC(stored key, messages)

The exchange of an unknown user uses a decoy salt and fails at its end, so that clients cannot find out which users
exist. Nonces are arguments. A client-first message may have Kafka's extension `tokenauth=true`: then the user is the id
of a delegation token and the password is the HMAC of that token in base64.
"""

import binascii
import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import NamedTuple

from sskafka.model.security.errors import SaslError
from sskafka.model.values import value

ITERATIONS_MIN = 4096
ITERATIONS_MAX = 1_000_000
"""Maximum that clients accept: PBKDF2 with billions of iterations would take hours."""
TOKEN_AUTH = "tokenauth"
_NAME = r"(?:[^,=]|=2C|=3D)"
_NONCE = r"[!-+\--~]+"
_BASE64 = r"[A-Za-z0-9+/=]+"
_FIRST = re.compile(
    rf"(?P<gs2>n,(?:a=(?P<authzid>{_NAME}*))?,)"
    rf"(?P<bare>n=(?P<user>{_NAME}+),r=(?P<nonce>{_NONCE})(?P<extensions>(?:,[A-Za-z]+=[^,]*)*))"
)
_FINAL = re.compile(
    rf"(?P<unproved>c=(?P<binding>{_BASE64}),r=(?P<nonce>{_NONCE})(?:,[A-Za-z]=[^,]*)*),p=(?P<proof>{_BASE64})"
)
_SERVER_FIRST = re.compile(rf"r=(?P<nonce>{_NONCE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[0-9]{{1,9}})(?:,.*)?")


class ScramMechanism(NamedTuple):
    name: str
    algorithm: str
    code: int
    """Its number in AlterUserScramCredentials and in metadata records."""

    def hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self.algorithm)

    def hash(self, data: bytes) -> bytes:
        return hashlib.new(self.algorithm, data).digest()

    def salted_password(self, password: str, salt: bytes, iterations: int) -> bytes:
        """Run PBKDF2. This takes milliseconds: call it in a thread."""
        return hashlib.pbkdf2_hmac(self.algorithm, password.encode(), salt, iterations)


SCRAM_MECHANISMS = {
    mechanism.name: mechanism
    for mechanism in (ScramMechanism("SCRAM-SHA-256", "sha256", 1), ScramMechanism("SCRAM-SHA-512", "sha512", 2))
}


@value
class ScramCredential:
    """The part of a password's derivation that a server stores."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int
    principal: str = ""
    """Principal of the credential, if it is not the user of the exchange: the owner of a delegation token."""
    expires_ms: int | None = None
    """When a delegation token expires, in milliseconds since 1970."""

    @classmethod
    def of_salted_password(
        cls,
        mechanism: ScramMechanism,
        salted: bytes,
        salt: bytes,
        iterations: int,
        principal: str = "",
        expires_ms: int | None = None,
    ) -> "ScramCredential":
        client_key = mechanism.hmac(salted, b"Client Key")
        server_key = mechanism.hmac(salted, b"Server Key")
        return cls(salt, mechanism.hash(client_key), server_key, iterations, principal, expires_ms)

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations})"


FindCredential = Callable[[str, bool], ScramCredential | None]
"""User name, and whether it is the id of a delegation token, to the stored credential."""


class ScramServerExchange:
    """One login as the server sees it: `first` answers the first message of the client, `final` the second one."""

    def __init__(self, mechanism: ScramMechanism, find: FindCredential, server_nonce: str, decoy_key: bytes) -> None:
        """`decoy_key` is a secret from which the salts of unknown users are derived."""
        self._mechanism = mechanism
        self._find = find
        self._server_nonce = server_nonce
        self._decoy_key = decoy_key
        self._credential: ScramCredential | None = None
        self._gs2_header = self._nonce = self._messages = ""
        self.user = ""
        self.is_token = False
        self.principal = ""
        """The principal of the credential, if it is not the user."""
        self.expires_ms: int | None = None

    def first(self, message: bytes) -> bytes:
        match = _FIRST.fullmatch(_text(message))
        if match is None:
            raise SaslError("Invalid SCRAM client first message")
        self.user = _from_sasl_name(match["user"])
        if match["authzid"] and _from_sasl_name(match["authzid"]) != self.user:
            text = "Authentication failed: Client requested an authorization id that is different from username"
            raise SaslError(text)
        self.is_token = f",{TOKEN_AUTH}=true" in match["extensions"].lower()
        self._gs2_header = match["gs2"]
        self._nonce = match["nonce"] + self._server_nonce
        self._credential = self._find(self.user, self.is_token)
        shown = self._credential or self._decoy()
        answer = f"r={self._nonce},s={b64encode(shown.salt).decode()},i={shown.iterations}"
        self._messages = f"{match['bare']},{answer}"
        return answer.encode()

    def final(self, message: bytes) -> bytes:
        """Check the proof; raise SaslError if it is wrong or the user is unknown, with the same text."""
        match = _FINAL.fullmatch(_text(message))
        if match is None or match["binding"] != b64encode(self._gs2_header.encode()).decode():
            raise SaslError("Invalid SCRAM client final message")
        if not match["nonce"].endswith(self._server_nonce):  # librdkafka before 2.6.1 puts the client's nonce twice
            raise SaslError("Invalid client nonce in the final client message.")
        credential = self._credential or self._decoy()
        signed = f"{self._messages},{match['unproved']}".encode()
        client_key = _xor(_decoded(match["proof"]), self._mechanism.hmac(credential.stored_key, signed))
        is_right = hmac.compare_digest(self._mechanism.hash(client_key), credential.stored_key)
        if not is_right or self._credential is None:
            raise SaslError(invalid_credentials(self._mechanism.name))
        self.principal, self.expires_ms = credential.principal, credential.expires_ms
        return b"v=" + b64encode(self._mechanism.hmac(credential.server_key, signed))

    def _decoy(self) -> ScramCredential:
        salt = self._mechanism.hmac(self._decoy_key, self.user.encode())
        return ScramCredential(salt[:20], salt, salt, ITERATIONS_MIN)


class ScramClientExchange:
    """One login as the client sees it; `prove` needs the salted password, which is slow to compute."""

    def __init__(self, mechanism: ScramMechanism, user: str, client_nonce: str, *, is_token: bool = False) -> None:
        self._mechanism = mechanism
        extensions = f",{TOKEN_AUTH}=true" if is_token else ""
        self._bare = f"n={_to_sasl_name(user)},r={client_nonce}{extensions}"
        self._client_nonce = client_nonce
        self._nonce = self._server_first = ""
        self._signature = b""

    def first(self) -> bytes:
        return f"n,,{self._bare}".encode()

    def challenge(self, message: bytes) -> tuple[bytes, int]:
        """Return salt and iterations of the server; raise SaslError if the server does not follow the protocol."""
        self._server_first = _text(message)
        match = _SERVER_FIRST.fullmatch(self._server_first)
        if match is None:
            raise SaslError("Invalid SCRAM server first message")
        self._nonce = match["nonce"]
        iterations = int(match["iterations"])
        if not self._nonce.startswith(self._client_nonce) or self._nonce == self._client_nonce:
            raise SaslError("Invalid server nonce: it does not begin with the nonce of this client")
        if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            text = f"the server asks for {iterations} iterations, allowed are {ITERATIONS_MIN} to {ITERATIONS_MAX}"
            raise SaslError(text)
        return _decoded(match["salt"]), iterations

    def prove(self, salted_password: bytes) -> bytes:
        mechanism = self._mechanism
        unproved = f"c=biws,r={self._nonce}"
        signed = f"{self._bare},{self._server_first},{unproved}".encode()
        client_key = mechanism.hmac(salted_password, b"Client Key")
        proof = _xor(client_key, mechanism.hmac(mechanism.hash(client_key), signed))
        self._signature = mechanism.hmac(mechanism.hmac(salted_password, b"Server Key"), signed)
        return f"{unproved},p={b64encode(proof).decode()}".encode()

    def verify(self, message: bytes) -> None:
        """Raise SaslError unless the server has proved that it knows the password, too."""
        text = _text(message)
        if text.startswith("e="):
            raise SaslError(f"the server refused the proof: {text[2:]}")
        if not text.startswith("v=") or not hmac.compare_digest(_decoded(text[2:].split(",")[0]), self._signature):
            raise SaslError("the server did not prove that it knows the password")


def invalid_credentials(mechanism: str) -> str:
    """Return Apache Kafka's text for a wrong password and for an unknown user."""
    return f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}"


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise SaslError("Invalid SCRAM message: not UTF-8") from None


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise SaslError("Invalid SCRAM message: not base64") from None


def _xor(left: bytes, right: bytes) -> bytes:
    if len(left) != len(right):
        raise SaslError("Invalid SCRAM proof: wrong length")
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


def _to_sasl_name(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def _from_sasl_name(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")
