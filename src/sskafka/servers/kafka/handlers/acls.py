"""CreateAcls, DeleteAcls and DescribeAcls. The controller stores ACLs in the metadata log."""

from sskafka.metadata.acls.changes import describe_acls
from sskafka.model.acl import AclOperation, AclPermission, PatternType, ResourceType
from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.controller import Controller, ask
from sskafka.servers.kafka.request import Request
from sskafka.wire.errors import MalformedMessageError
from sskafka.wire.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from sskafka.wire.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse
from sskafka.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

NO_AUTHORIZER = "No Authorizer is configured."
UNKNOWN = 0
"""The code UNKNOWN of resource types, pattern types, operations and permissions."""
_CODES = tuple(frozenset(codes) - {UNKNOWN} for codes in (ResourceType, PatternType, AclOperation, AclPermission))


class AclHandlers:
    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def describe(self, message: DescribeAclsRequest, request: Request) -> DescribeAclsResponse:
        _refuse_unknown(
            request,
            message.resource_type_filter,
            message.pattern_type_filter,
            message.operation,
            message.permission_type,
        )
        if not request.connection.authorizer.is_configured:
            text = "No Authorizer is configured on the broker"
            return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=text)
        return describe_acls(self._controller.image, message)

    async def create(self, message: CreateAclsRequest, request: Request) -> CreateAclsResponse:
        for one in message.creations:
            _refuse_unknown(request, one.resource_type, one.resource_pattern_type, one.operation, one.permission_type)

        def refused(code: ErrorCode, text: str | None) -> CreateAclsResponse:
            return CreateAclsResponse(results=[AclCreationResult(code, text) for _ in message.creations])

        if not request.connection.authorizer.is_configured:
            return refused(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
        return await ask(self._controller, message, refused, request.caller)

    async def delete(self, message: DeleteAclsRequest, request: Request) -> DeleteAclsResponse:
        for one in message.filters:
            _refuse_unknown(
                request, one.resource_type_filter, one.pattern_type_filter, one.operation, one.permission_type
            )

        def refused(code: ErrorCode, text: str | None) -> DeleteAclsResponse:
            return DeleteAclsResponse(filter_results=[DeleteAclsFilterResult(code, text) for _ in message.filters])

        if not request.connection.authorizer.is_configured:
            return refused(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
        return await ask(self._controller, message, refused, request.caller)


def _refuse_unknown(request: Request, *codes: int) -> None:
    """Close the connection of a request with the code UNKNOWN, as Kafka does.

    Other codes that Kafka does not define are refused only where an authorizer would have to understand them."""
    is_configured = request.connection.authorizer.is_configured
    for code, known in zip(codes, _CODES, strict=True):
        if code == UNKNOWN or (is_configured and code not in known):
            raise MalformedMessageError(f"the ACL request contains an UNKNOWN element (code {code})")
