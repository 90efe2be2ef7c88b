"""Delegation tokens: create, list, renew and expire them.

A client that has the HMAC of a token can log in as its owner: with SCRAM, the id of the token as user, the HMAC in
base64 as password, and `tokenauth="true"` in `sasl.jaas.config`.
"""

from base64 import b64encode
from collections.abc import Iterable
from typing import Any, NamedTuple

from sskafka.client.cluster import Cluster
from sskafka.client.errors import broker_error
from sskafka.model.error_texts import error_text
from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from sskafka.wire.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from sskafka.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from sskafka.wire.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from sskafka.wire.schema import Message

DEFAULT_PERIOD = -1
"""The time that the cluster allows; in `expire_token`: at once."""


class DelegationToken(NamedTuple):
    token_id: str
    hmac: bytes
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_ms: int
    expiry_ms: int
    max_ms: int

    @property
    def password(self) -> str:
        """The HMAC in base64, with which clients log in."""
        return b64encode(self.hmac).decode()

    def __repr__(self) -> str:
        return f"DelegationToken({self.token_id!r}, owner={self.owner!r})"


async def create_token(
    cluster: Cluster, owner: str = "", renewers: Iterable[str] = (), max_lifetime_ms: int = DEFAULT_PERIOD
) -> DelegationToken:
    """Create a token of this client, or of another owner. Raise KafkaError if that is not allowed.

    The request is not retried if the response is lost; a token that was created then is unknown to all clients and
    expires."""
    owner_type, _, owner_name = _principal(owner).partition(":") if owner else ("", "", "")
    pairs = [_principal(renewer).partition(":") for renewer in renewers]
    request = CreateDelegationTokenRequest(
        owner_type, owner_name, [CreatableRenewers(kind, name) for kind, _, name in pairs], max_lifetime_ms
    )
    made = await _ask(cluster, request, CreateDelegationTokenResponse)
    return DelegationToken(
        made.token_id,
        bytes(made.hmac),
        f"{made.principal_type}:{made.principal_name}",
        f"{made.token_requester_principal_type}:{made.token_requester_principal_name}",
        tuple(f"{kind}:{name}" for kind, _, name in pairs),
        made.issue_timestamp_ms,
        made.expiry_timestamp_ms,
        made.max_timestamp_ms,
    )


async def renew_token(cluster: Cluster, hmac: bytes, period_ms: int = DEFAULT_PERIOD) -> int:
    """Return when the token expires now, in milliseconds since 1970."""
    response = await _ask(cluster, RenewDelegationTokenRequest(hmac, period_ms), RenewDelegationTokenResponse)
    return int(response.expiry_timestamp_ms)


async def expire_token(cluster: Cluster, hmac: bytes, period_ms: int = DEFAULT_PERIOD) -> int:
    """Return when the token expires now, in milliseconds since 1970; -1: it is removed."""
    response = await _ask(cluster, ExpireDelegationTokenRequest(hmac, period_ms), ExpireDelegationTokenResponse)
    return int(response.expiry_timestamp_ms)


async def describe_tokens(cluster: Cluster, owners: Iterable[str] | None = None) -> list[DelegationToken]:
    """Return the tokens of the owners (None: of everybody) that this client may see."""
    names = None if owners is None else [_principal(owner).partition(":") for owner in owners]
    request = DescribeDelegationTokenRequest(
        None if names is None else [DescribeDelegationTokenOwner(kind, name) for kind, _, name in names]
    )
    response = await _ask(cluster, request, DescribeDelegationTokenResponse)
    return [_token(found) for found in response.tokens]


def _token(found: DescribedDelegationToken) -> DelegationToken:
    return DelegationToken(
        found.token_id,
        bytes(found.hmac),
        f"{found.principal_type}:{found.principal_name}",
        f"{found.token_requester_principal_type}:{found.token_requester_principal_name}",
        tuple(f"{renewer.principal_type}:{renewer.principal_name}" for renewer in found.renewers),
        found.issue_timestamp,
        found.expiry_timestamp,
        found.max_timestamp,
    )


def _principal(name: str) -> str:
    return name if ":" in name else f"User:{name}"


async def _ask(cluster: Cluster, request: Message, response_class: type[Any]) -> Any:
    """Ask any broker, which forwards changes to the controller."""
    response = await (await cluster.any_connection()).request(request, response_class)
    if response.error_code != ErrorCode.NONE:
        raise broker_error(response.error_code, error_text(ErrorCode(response.error_code)))
    return response
