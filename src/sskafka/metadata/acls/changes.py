"""CreateAcls, DeleteAcls and DescribeAcls: ACLs are records of the metadata log."""

from collections.abc import Collection, Iterable
from itertools import groupby

from sskafka.metadata.acls.binding import AclBinding, parse_network
from sskafka.metadata.acls.filter import AclFilter
from sskafka.metadata.controller_result import ControllerResult, RandomBytes
from sskafka.metadata.features import METADATA_VERSION_NAMES
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import MetadataRecord, RemoveAccessControlEntryRecord
from sskafka.model.acl import CLUSTER_NAME, AclOperation, AclPermission, PatternType, ResourceType
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import Uuid
from sskafka.wire.messages import create_acls as creating
from sskafka.wire.messages import delete_acls as deleting
from sskafka.wire.messages import describe_acls as describing

CHANGES_MAX = 10_000
"""The number of ACLs that one request may create or delete."""
NETWORKS_SINCE = 30
"""Metadata version (4.3-IV0) from which on the host of an ACL may be a network."""


# --- CreateAcls -------------------------------------------------------------------------------------


def create_acls(
    image: ClusterImage, request: creating.CreateAclsRequest, random: RandomBytes
) -> ControllerResult[creating.CreateAclsResponse]:
    known = {AclBinding.of(record) for record in image.access_control.values()}
    records: list[MetadataRecord] = []
    results: list[creating.AclCreationResult] = []
    for creation in request.creations:
        try:
            binding = _valid_binding(creation, image.metadata_version)
            if binding not in known:
                if len(records) >= CHANGES_MAX:
                    raise _invalid(f"Cannot create more than {CHANGES_MAX} acls in a single create operation.")
                known.add(binding)
                records.append(binding.to_record(_new_id(image, random)))
            results.append(creating.AclCreationResult(error_message=None))
        except KafkaError as error:
            results.append(creating.AclCreationResult(error.code, error.message))
    return ControllerResult(records, creating.CreateAclsResponse(results=results))


def _new_id(image: ClusterImage, random: RandomBytes) -> Uuid:
    while (acl_id := Uuid(random(16))) in image.access_control:
        pass
    return acl_id


def _valid_binding(creation: creating.AclCreation, metadata_version: int) -> AclBinding:
    resource_type = _known(ResourceType, creation.resource_type)
    if resource_type is ResourceType.CLUSTER and creation.resource_name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not creation.resource_name:
        raise _invalid("Invalid empty resource name")
    if resource_type in (ResourceType.UNKNOWN, ResourceType.ANY):
        raise _invalid(f"Invalid resourceType {resource_type.name}")
    pattern_type = _known(PatternType, creation.resource_pattern_type)
    if pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise _invalid(f"Invalid patternType {pattern_type.name}")
    operation = _known(AclOperation, creation.operation)
    if operation in (AclOperation.UNKNOWN, AclOperation.ANY):
        raise _invalid(f"Invalid operation {operation.name}")
    permission = _known(AclPermission, creation.permission_type)
    if permission not in (AclPermission.DENY, AclPermission.ALLOW):
        raise _invalid(f"Invalid permissionType {permission.name}")
    _check_principal(creation.principal)
    _check_host(creation.host, metadata_version)
    return AclBinding(
        resource_type, creation.resource_name, pattern_type, creation.principal, creation.host, operation, permission
    )


def _check_principal(principal: str) -> None:
    if ":" not in principal:
        raise _invalid(
            f"Could not parse principal from `{principal}` (no colon is present separating the principal type from "
            "the principal name)"
        )


def _check_host(host: str, metadata_version: int) -> None:
    if not host:
        raise _invalid("Host should not be empty")
    if "/" not in host:
        return
    if metadata_version < NETWORKS_SINCE:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"CIDR-based ACL host patterns require metadata version {METADATA_VERSION_NAMES[NETWORKS_SINCE]} or later.",
        )
    if parse_network(host) is None:
        raise _invalid(f"Invalid CIDR notation '{host}'")


# --- DeleteAcls -------------------------------------------------------------------------------------


def delete_acls(
    image: ClusterImage, request: deleting.DeleteAclsRequest
) -> ControllerResult[deleting.DeleteAclsResponse]:
    """Delete the ACLs that match any of the filters. Raise KafkaError if they are too many for one request.

    An ACL counts for each filter that it matches, because the response lists it each time."""
    known = _KnownAcls(image)
    matches = 0
    removed: dict[Uuid, None] = {}
    results: list[deleting.DeleteAclsFilterResult] = []
    for one in request.filters:
        try:
            wanted = AclFilter.from_message(one)
        except KafkaError as error:
            results.append(deleting.DeleteAclsFilterResult(error.code, error.message))
            continue
        matching = known.matching(wanted)
        removed |= dict.fromkeys(matching)
        matches += len(matching)
        if matches > CHANGES_MAX:
            raise _invalid(f"Cannot remove more than {CHANGES_MAX} acls in a single delete operation.")
        results.append(
            deleting.DeleteAclsFilterResult(
                error_message=None, matching_acls=[_deleted(known.bindings[acl_id]) for acl_id in matching]
            )
        )
    records = [RemoveAccessControlEntryRecord(acl_id) for acl_id in removed]
    return ControllerResult(records, deleting.DeleteAclsResponse(filter_results=results))


class _KnownAcls:
    """The ACLs of an image, also by the fields in which they mostly differ, so that a filter looks at few of them."""

    def __init__(self, image: ClusterImage) -> None:
        self.bindings = {acl_id: AclBinding.of(record) for acl_id, record in image.access_control.items()}
        self._by_name: dict[str, list[Uuid]] = {}
        self._by_principal: dict[str, list[Uuid]] = {}
        self._by_host: dict[str, list[Uuid]] = {}
        for acl_id, binding in self.bindings.items():
            self._by_name.setdefault(binding.resource_name, []).append(acl_id)
            self._by_principal.setdefault(binding.principal, []).append(acl_id)
            self._by_host.setdefault(binding.host, []).append(acl_id)
        self._answered: dict[AclFilter, list[Uuid]] = {}

    def matching(self, wanted: AclFilter) -> list[Uuid]:
        if wanted not in self._answered:
            candidates = self._candidates(wanted)
            self._answered[wanted] = [acl_id for acl_id in candidates if wanted.matches(self.bindings[acl_id])]
        return self._answered[wanted]

    def _candidates(self, wanted: AclFilter) -> Collection[Uuid]:
        name = None if wanted.pattern_type == PatternType.MATCH else wanted.resource_name
        named = ((self._by_name, name), (self._by_principal, wanted.principal), (self._by_host, wanted.host))
        found = [index.get(value, []) for index, value in named if value is not None]
        return min(found, key=len) if found else self.bindings


def _deleted(binding: AclBinding) -> deleting.DeleteAclsMatchingAcl:
    return deleting.DeleteAclsMatchingAcl(0, None, *binding)


# --- DescribeAcls -----------------------------------------------------------------------------------


def describe_acls(image: ClusterImage, request: describing.DescribeAclsRequest) -> describing.DescribeAclsResponse:
    try:
        wanted = AclFilter.from_message(request)
    except KafkaError as error:
        return describing.DescribeAclsResponse(error_code=error.code, error_message=error.message)
    found = [binding for record in image.access_control.values() if wanted.matches(binding := AclBinding.of(record))]
    return describing.DescribeAclsResponse(error_message=None, resources=list(_resources(found)))


def _resources(bindings: Iterable[AclBinding]) -> Iterable[describing.DescribeAclsResource]:
    for (resource_type, name, pattern_type), group in groupby(sorted(bindings), key=lambda binding: binding[:3]):
        acls = [describing.AclDescription(*binding[3:]) for binding in group]
        yield describing.DescribeAclsResource(resource_type, name, pattern_type, acls)


def _known(
    codes: type[ResourceType] | type[PatternType] | type[AclOperation] | type[AclPermission], code: int
) -> ResourceType | PatternType | AclOperation | AclPermission:
    """Return the member with the code; codes that are not known become UNKNOWN, as in Kafka."""
    return codes(code) if code in set(codes) else codes(0)


def _invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, text)
