"""Delegation tokens (KIP-48, KIP-373): create, renew, expire and describe them.

    issue ---------- expiry ------------------- max       renew moves the expiry, up to max; expire moves it to any time
      |   login works  |   login is refused      |        in between, or removes the token at once
                       removed by the controller at its next check

A token is a name, its owner, its requester and its renewers. Its password is the HMAC of its name with the secret key
of the cluster: the metadata log does not contain it. Principals are texts such as `User:alice`.

Every node keeps all tokens in memory, and any client that has logged in may create some: so their number and size are
bounded. Expired tokens count until they are removed.
"""

import hmac
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from sskafka.metadata.controller_result import ControllerResult, RandomBytes
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import DelegationTokenRecord, RemoveDelegationTokenRecord
from sskafka.model.computation import Computation
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import uuid_text
from sskafka.wire.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from sskafka.wire.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from sskafka.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from sskafka.wire.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

METADATA_VERSION_MIN = 14
"""metadata.version 3.6-IV2 is the first that has delegation tokens."""
USER_TYPE = "User"
RENEWERS_MAX = 100
NAME_CHARACTERS_MAX = 500
"""Maximum length of the names of renewers, and of an owner other than the client itself."""
TOKENS_OF_OWNER_MAX = 1_000
TOKENS_OF_REQUESTER_MAX = 10_000
_UUID_BYTES = 16
_TOKENS_PER_STEP = 10
_NAMES_PER_STEP = 1_000


class TokenSettings(NamedTuple):
    """`delegation.token.` settings."""

    secret_key: str | None
    """None: there are no delegation tokens."""
    max_lifetime_ms: int
    expiry_time_ms: int

    def __repr__(self) -> str:
        return f"TokenSettings(is_enabled={self.secret_key is not None})"


@lru_cache(maxsize=10_000)
def token_hmac(secret_key: str, token_id: str) -> bytes:
    """Return the password of a token. Clients present it in base64."""
    return hmac.digest(secret_key.encode(), token_id.encode(), "sha512")


def principal(kind: str | None, name: str | None) -> str:
    return f"{kind}:{name}"


def owner_of(request: CreateDelegationTokenRequest, requester: str) -> str:
    name = request.owner_principal_name
    return principal(request.owner_principal_type, name) if name else requester


def is_owner_or_renewer(token: DelegationTokenRecord, who: str) -> bool:
    """Return whether a principal may see the token without an ACL; its requester counts as an owner here."""
    return who in (token.owner, token.requester) or who in token.renewers


# -- decisions of the controller


def create_delegation_token(
    image: ClusterImage,
    request: CreateDelegationTokenRequest,
    requester: str,
    settings: TokenSettings,
    now_ms: int,
    random: RandomBytes,
) -> ControllerResult[CreateDelegationTokenResponse]:
    owner = owner_of(request, requester)
    response = CreateDelegationTokenResponse()
    response.principal_type, _, response.principal_name = owner.partition(":")
    response.token_requester_principal_type, _, response.token_requester_principal_name = requester.partition(":")
    try:
        secret_key = _checked_key(image, settings)
        if any(renewer.principal_type != USER_TYPE for renewer in request.renewers):
            raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)
        _check_bounds(image, request, owner, requester)
    except KafkaError as error:
        response.error_code = error.code
        return ControllerResult((), response)
    lifetime_ms = settings.max_lifetime_ms
    if request.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
    max_ms = now_ms + lifetime_ms
    expiry_ms = min(max_ms, now_ms + settings.expiry_time_ms)
    token_id = uuid_text(random(_UUID_BYTES))
    renewers = [principal(renewer.principal_type, renewer.principal_name) for renewer in request.renewers]
    record = DelegationTokenRecord(owner, requester, renewers, now_ms, max_ms, expiry_ms, token_id)
    response.issue_timestamp_ms, response.expiry_timestamp_ms, response.max_timestamp_ms = now_ms, expiry_ms, max_ms
    response.token_id, response.hmac = token_id, token_hmac(secret_key, token_id)
    return ControllerResult([record], response)


def _check_bounds(image: ClusterImage, request: CreateDelegationTokenRequest, owner: str, requester: str) -> None:
    """Raise KafkaError with INVALID_REQUEST for a token that is too large, POLICY_VIOLATION if there are too many."""
    names = [request.owner_principal_name or "", *(renewer.principal_name for renewer in request.renewers)]
    if len(request.renewers) > RENEWERS_MAX or max(map(len, names)) > NAME_CHARACTERS_MAX:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    tokens = image.delegation_tokens.values()
    if sum(token.owner == owner for token in tokens) >= TOKENS_OF_OWNER_MAX:
        raise KafkaError(ErrorCode.POLICY_VIOLATION)
    if sum(token.requester == requester for token in tokens) >= TOKENS_OF_REQUESTER_MAX:
        raise KafkaError(ErrorCode.POLICY_VIOLATION)


def renew_delegation_token(
    image: ClusterImage, request: RenewDelegationTokenRequest, requester: str, settings: TokenSettings, now_ms: int
) -> ControllerResult[RenewDelegationTokenResponse]:
    """Move the expiry of the token to the end of the period, even if that is earlier than before."""
    try:
        token = _found(image, bytes(request.hmac), requester, settings, now_ms)
    except KafkaError as error:
        return ControllerResult((), RenewDelegationTokenResponse(error.code))
    period_ms = settings.expiry_time_ms
    if request.renew_period_ms > 0:
        period_ms = min(period_ms, request.renew_period_ms)
    expiry_ms = min(token.max_timestamp, now_ms + period_ms)
    return ControllerResult(
        [_with_expiry(token, expiry_ms)], RenewDelegationTokenResponse(expiry_timestamp_ms=expiry_ms)
    )


def expire_delegation_token(
    image: ClusterImage, request: ExpireDelegationTokenRequest, requester: str, settings: TokenSettings, now_ms: int
) -> ControllerResult[ExpireDelegationTokenResponse]:
    """Move the expiry of the token; a negative period removes the token now."""
    try:
        token = _found(image, bytes(request.hmac), requester, settings, now_ms)
    except KafkaError as error:
        return ControllerResult((), ExpireDelegationTokenResponse(error.code))
    period_ms = request.expiry_time_period_ms
    if period_ms < 0:
        removal = RemoveDelegationTokenRecord(token.token_id)
        return ControllerResult([removal], ExpireDelegationTokenResponse(expiry_timestamp_ms=period_ms))
    expiry_ms = min(token.max_timestamp, now_ms + period_ms)
    return ControllerResult(
        [_with_expiry(token, expiry_ms)], ExpireDelegationTokenResponse(expiry_timestamp_ms=expiry_ms)
    )


def remove_expired_tokens(image: ClusterImage, now_ms: int) -> ControllerResult[None]:
    expired = [token for token in image.delegation_tokens.values() if is_expired(token, now_ms)]
    return ControllerResult([RemoveDelegationTokenRecord(token.token_id) for token in expired], None)


def is_expired(token: DelegationTokenRecord, now_ms: int) -> bool:
    return min(token.max_timestamp, token.expiration_timestamp) < now_ms


def _found(
    image: ClusterImage, presented: bytes, requester: str, settings: TokenSettings, now_ms: int
) -> DelegationTokenRecord:
    """Return the token with this HMAC. Raise KafkaError if there is none, or the requester may not change it."""
    secret_key = _checked_key(image, settings)
    hmacs = ((token_hmac(secret_key, token_id), token) for token_id, token in image.delegation_tokens.items())
    token = next((token for known, token in hmacs if hmac.compare_digest(known, presented)), None)
    if token is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    if is_expired(token, now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    if requester != token.owner and requester not in token.renewers:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
    return token


def _checked_key(image: ClusterImage, settings: TokenSettings) -> str:
    if settings.secret_key is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    if image.metadata_version < METADATA_VERSION_MIN:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    return settings.secret_key


def _with_expiry(token: DelegationTokenRecord, expiry_ms: int) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        token.owner,
        token.requester,
        list(token.renewers),
        token.issue_timestamp,
        token.max_timestamp,
        expiry_ms,
        token.token_id,
    )


# -- descriptions, which every broker answers


def describe_delegation_tokens(
    image: ClusterImage,
    request: DescribeDelegationTokenRequest,
    secret_key: str,
    may_see: Callable[[DelegationTokenRecord], bool],
) -> Computation[DescribeDelegationTokenResponse]:
    """Describe, in steps, the tokens that the client may see: those of the named owners, or of all if there is no list.

    An empty list names nobody."""
    names = None if request.owners is None else (yield from _names(request.owners))
    response = DescribeDelegationTokenResponse()
    for number, token in enumerate(tuple(image.delegation_tokens.values()), 1):
        is_wanted = names is None or not names.isdisjoint((token.owner, token.requester, *token.renewers))
        if is_wanted and may_see(token):
            response.tokens.append(_described(token, secret_key))
        if not number % _TOKENS_PER_STEP:
            yield
    return response


def _names(owners: Sequence[DescribeDelegationTokenOwner]) -> Computation[set[str]]:
    names = set()
    for number, owner in enumerate(owners, 1):
        names.add(principal(owner.principal_type, owner.principal_name))
        if not number % _NAMES_PER_STEP:
            yield
    return names


def _described(token: DelegationTokenRecord, secret_key: str) -> DescribedDelegationToken:
    owner_type, _, owner_name = token.owner.partition(":")
    requester_type, _, requester_name = token.requester.partition(":")
    renewers = (renewer.partition(":") for renewer in token.renewers)
    return DescribedDelegationToken(
        owner_type,
        owner_name,
        requester_type,
        requester_name,
        token.issue_timestamp,
        token.expiration_timestamp,
        token.max_timestamp,
        token.token_id,
        token_hmac(secret_key, token.token_id),
        [DescribedDelegationTokenRenewer(kind, name) for kind, _, name in renewers],
    )
