"""SCRAM credentials of delegation tokens: a client that logs in with the extension `tokenauth=true` is authenticated as
the owner of the token.

The user of the login is the id of the token, the password its HMAC in base64. A broker derives the credential when the
token is first used, which takes a few milliseconds, and keeps it: the HMAC of a token never changes.
"""

import os
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable

from sskafka.metadata.delegation_tokens import token_hmac
from sskafka.metadata.image import ClusterImage
from sskafka.model.security.scram import ITERATIONS_MIN, ScramCredential, ScramMechanism

SALT_BYTES = 20
KEPT_MAX = 10_000


class TokenCredentials:
    def __init__(self, secret_key: str | None, image: Callable[[], ClusterImage]) -> None:
        self._secret_key = secret_key
        self._image = image
        self._kept: OrderedDict[tuple[str, str], ScramCredential] = OrderedDict()

    def find(self, mechanism: ScramMechanism, token_id: str) -> ScramCredential | None:
        token = self._image().delegation_tokens.get(token_id)
        if token is None or self._secret_key is None:
            return None
        key = (mechanism.name, token_id)
        kept = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = _derived(mechanism, token_hmac(self._secret_key, token_id))
            if len(self._kept) > KEPT_MAX:
                self._kept.popitem(last=False)
        expires_ms = min(token.max_timestamp, token.expiration_timestamp)
        return ScramCredential(kept.salt, kept.stored_key, kept.server_key, kept.iterations, token.owner, expires_ms)


def _derived(mechanism: ScramMechanism, password: bytes) -> ScramCredential:
    salt = os.urandom(SALT_BYTES)
    salted = mechanism.salted_password(b64encode(password).decode(), salt, ITERATIONS_MIN)
    return ScramCredential.of_salted_password(mechanism, salted, salt, ITERATIONS_MIN)
