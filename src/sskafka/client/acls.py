"""Administration of access control lists: create, delete and list ACLs."""

from collections.abc import Iterable, Sequence

from sskafka.client.cluster import Cluster
from sskafka.client.errors import broker_error, raise_for
from sskafka.metadata.acls.binding import AclBinding
from sskafka.metadata.acls.filter import AclFilter
from sskafka.model.acl import AclOperation, AclPermission, PatternType, ResourceType
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.wire.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from sskafka.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from sskafka.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

ANY_ACL = AclFilter(ResourceType.ANY, None, PatternType.ANY, None, None, AclOperation.ANY, AclPermission.ANY)
"""Matches every ACL."""


async def describe_acls(cluster: Cluster, wanted: AclFilter = ANY_ACL) -> list[AclBinding]:
    """Return the ACLs that the filter matches, sorted by resource."""
    request = DescribeAclsRequest(*wanted)

    async def attempt() -> DescribeAclsResponse:
        response = await (await cluster.any_connection()).request(request, DescribeAclsResponse)
        raise_for(response.error_code, response.error_message)
        return response

    return sorted(
        AclBinding(
            resource.resource_type,
            resource.resource_name,
            resource.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for resource in (await cluster.retrying(attempt)).resources
        for acl in resource.acls
    )


async def create_acls(cluster: Cluster, bindings: Sequence[AclBinding]) -> dict[AclBinding, KafkaError | None]:
    """Create the ACLs and return one outcome per ACL. Creating an ACL that exists succeeds and changes nothing."""
    request = CreateAclsRequest([AclCreation(*binding) for binding in bindings])

    async def attempt() -> CreateAclsResponse:
        response = await (await cluster.controller_connection()).request(request, CreateAclsResponse)
        await _raise_if_not_controller(cluster, (result.error_code for result in response.results))
        return response

    results = (await cluster.retrying(attempt)).results
    return {
        binding: broker_error(result.error_code, result.error_message) if result.error_code else None
        for binding, result in zip(bindings, results, strict=True)
    }


async def delete_acls(cluster: Cluster, filters: Sequence[AclFilter]) -> list[AclBinding]:
    """Delete the ACLs that any of the filters matches and return them. Raise KafkaError if one is not deleted."""
    request = DeleteAclsRequest([DeleteAclsFilter(*one) for one in filters])

    async def attempt() -> DeleteAclsResponse:
        response = await (await cluster.controller_connection()).request(request, DeleteAclsResponse)
        await _raise_if_not_controller(cluster, (result.error_code for result in response.filter_results))
        return response

    deleted = set()
    for result in (await cluster.retrying(attempt)).filter_results:
        raise_for(result.error_code, result.error_message)
        for acl in result.matching_acls:
            raise_for(acl.error_code, acl.error_message)
            deleted.add(AclBinding.of(acl))
    return sorted(deleted)


async def _raise_if_not_controller(cluster: Cluster, codes: Iterable[int]) -> None:
    if ErrorCode.NOT_CONTROLLER in codes:
        await cluster.refresh()
        raise broker_error(ErrorCode.NOT_CONTROLLER)
