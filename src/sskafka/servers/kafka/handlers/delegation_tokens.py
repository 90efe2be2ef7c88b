"""CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken and DescribeDelegationToken.

The controller decides. Clients that are anonymous, and clients that have logged in with a token, get no tokens. The
owner, the requester and the renewers of a token may see it; ACLs may allow more:

    create a token for another owner      CREATE_TOKENS on USER, with the name of the owner
    see tokens of another owner           DESCRIBE_TOKENS on USER, or DESCRIBE on DELEGATION_TOKEN, with the id
"""

from sskafka.metadata.delegation_tokens import USER_TYPE, describe_delegation_tokens, is_owner_or_renewer, owner_of
from sskafka.metadata.records import DelegationTokenRecord
from sskafka.model.acl import ANONYMOUS, AclOperation, ResourceType
from sskafka.model.computation import Computation
from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.controller import Controller, ask
from sskafka.servers.kafka.request import Request
from sskafka.wire.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from sskafka.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from sskafka.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from sskafka.wire.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

NO_TIMESTAMP = -1
NOT_ALLOWED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


class DelegationTokenHandlers:
    def __init__(self, controller: Controller, secret_key: str | None) -> None:
        self._controller = controller
        self._secret_key = secret_key

    async def create(self, message: CreateDelegationTokenRequest, request: Request) -> CreateDelegationTokenResponse:
        if message.owner_principal_name and message.owner_principal_type is None:
            return _not_created(ErrorCode.UNKNOWN_SERVER_ERROR, ANONYMOUS, ANONYMOUS)
        requester = request.principal
        owner = owner_of(message, requester)

        def refused(code: ErrorCode, text: str | None) -> CreateDelegationTokenResponse:
            return _not_created(code, owner, requester)

        if not _may_have_tokens(request):
            return refused(NOT_ALLOWED, None)
        if owner != requester and not request.may(AclOperation.CREATE_TOKENS, ResourceType.USER, owner):
            return refused(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, None)
        if any(renewer.principal_type != USER_TYPE for renewer in message.renewers):
            return refused(ErrorCode.INVALID_PRINCIPAL_TYPE, None)
        return await ask(self._controller, message, refused, request.caller)

    async def renew(self, message: RenewDelegationTokenRequest, request: Request) -> RenewDelegationTokenResponse:
        def refused(code: ErrorCode, text: str | None) -> RenewDelegationTokenResponse:
            return RenewDelegationTokenResponse(code, NO_TIMESTAMP)

        if not _may_have_tokens(request):
            return refused(NOT_ALLOWED, None)
        return await ask(self._controller, message, refused, request.caller)

    async def expire(self, message: ExpireDelegationTokenRequest, request: Request) -> ExpireDelegationTokenResponse:
        def refused(code: ErrorCode, text: str | None) -> ExpireDelegationTokenResponse:
            return ExpireDelegationTokenResponse(code, NO_TIMESTAMP)

        if not _may_have_tokens(request):
            return refused(NOT_ALLOWED, None)
        return await ask(self._controller, message, refused, request.caller)

    def describe(
        self, message: DescribeDelegationTokenRequest, request: Request
    ) -> Computation[DescribeDelegationTokenResponse]:
        if not _may_have_tokens(request):
            return DescribeDelegationTokenResponse(NOT_ALLOWED)
        if self._secret_key is None:
            return DescribeDelegationTokenResponse(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)

        def may_see(token: DelegationTokenRecord) -> bool:
            return (
                is_owner_or_renewer(token, request.principal)
                or request.may_see(ResourceType.DELEGATION_TOKEN, token.token_id)
                or request.may_see(ResourceType.USER, token.owner, AclOperation.DESCRIBE_TOKENS)
            )

        return (yield from describe_delegation_tokens(self._controller.image, message, self._secret_key, may_see))


def _may_have_tokens(request: Request) -> bool:
    return request.principal != ANONYMOUS and not request.is_token_authenticated


def _not_created(code: ErrorCode, owner: str, requester: str) -> CreateDelegationTokenResponse:
    owner_type, _, owner_name = owner.partition(":")
    requester_type, _, requester_name = requester.partition(":")
    return CreateDelegationTokenResponse(
        error_code=code,
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
        issue_timestamp_ms=NO_TIMESTAMP,
        expiry_timestamp_ms=NO_TIMESTAMP,
        max_timestamp_ms=NO_TIMESTAMP,
    )
