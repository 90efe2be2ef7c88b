"""Access control lists: decisions, filters, creation and deletion."""

from collections.abc import Iterator

import pytest

from sskafka.metadata.acls.authorizer import StandardAuthorizer, parse_super_users
from sskafka.metadata.acls.binding import AclBinding
from sskafka.metadata.acls.changes import CHANGES_MAX, create_acls, delete_acls, describe_acls
from sskafka.metadata.acls.filter import AclFilter
from sskafka.metadata.controller_result import ControllerResult
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import AccessControlEntryRecord, FeatureLevelRecord
from sskafka.model.acl import AclOperation, AclPermission, AuthorizerNotReadyError, PatternType, ResourceType
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.wire.messages.create_acls import AclCreation, CreateAclsRequest
from sskafka.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from sskafka.wire.messages.describe_acls import DescribeAclsRequest

ALICE, HOST = "User:alice", "10.0.0.1"
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
READ, WRITE, DESCRIBE, ALL = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.ALL
LITERAL, PREFIXED, MATCH = PatternType.LITERAL, PatternType.PREFIXED, PatternType.MATCH
ALLOW, DENY = AclPermission.ALLOW, AclPermission.DENY


def numbers() -> Iterator[bytes]:
    number = 0
    while True:
        number += 1
        yield number.to_bytes(16, "big")


def authorizer_with(*acls: AclBinding, super_users: str = "", everyone: bool = False) -> StandardAuthorizer:
    authorizer = StandardAuthorizer(parse_super_users(super_users), allow_everyone_if_no_acl_found=everyone)
    authorizer.apply({acl_id: acl.to_record(acl_id) for acl_id, acl in zip(numbers(), acls, strict=False)})
    return authorizer


def acl(
    operation: AclOperation = READ,
    name: str = "orders",
    pattern: PatternType = LITERAL,
    principal: str = ALICE,
    host: str = "*",
    permission: AclPermission = ALLOW,
    resource_type: ResourceType = TOPIC,
) -> AclBinding:
    return AclBinding(resource_type, name, pattern, principal, host, operation, permission)


def may(authorizer: StandardAuthorizer, operation: AclOperation = READ, name: str = "orders", host: str = HOST) -> bool:
    return authorizer.allows(ALICE, host, operation, TOPIC, name)


# --- decisions --------------------------------------------------------------------------------------


def test_nothing_is_allowed_without_an_acl() -> None:
    assert not may(authorizer_with())
    assert may(authorizer_with(everyone=True))


def test_everyone_is_allowed_only_where_no_acl_names_the_resource() -> None:
    authorizer = authorizer_with(acl(principal="User:bob"), everyone=True)
    assert not may(authorizer)
    assert may(authorizer, name="payments")


def test_super_users_need_no_acl_and_do_not_wait_for_them() -> None:
    authorizer = StandardAuthorizer(parse_super_users("User:admin; User:alice;"), allow_everyone_if_no_acl_found=False)
    assert not authorizer.is_ready
    assert may(authorizer)
    with pytest.raises(AuthorizerNotReadyError):
        authorizer.allows("User:bob", HOST, READ, TOPIC, "orders")


def test_deny_wins_over_allow_of_a_longer_pattern() -> None:
    authorizer = authorizer_with(acl(ALL), acl(READ, "ord", PREFIXED, "User:*", permission=DENY))
    assert not may(authorizer, READ)
    assert may(authorizer, WRITE)


@pytest.mark.parametrize("operation", [READ, WRITE, AclOperation.DELETE, AclOperation.ALTER])
def test_operations_imply_describe_but_their_denial_does_not(operation: AclOperation) -> None:
    assert may(authorizer_with(acl(operation)), DESCRIBE)
    assert may(authorizer_with(acl(DESCRIBE), acl(operation, permission=DENY)), DESCRIBE)


def test_alter_configs_implies_describe_configs_alone() -> None:
    authorizer = authorizer_with(acl(AclOperation.ALTER_CONFIGS))
    assert may(authorizer, AclOperation.DESCRIBE_CONFIGS)
    assert not may(authorizer, DESCRIBE)


@pytest.mark.parametrize(
    ("pattern", "host", "expected"),
    [
        ("10.0.0.0/24", "10.0.0.255", True),
        ("10.0.0.0/24", "10.0.1.0", False),
        ("10.0.0.7/24", "10.0.0.1", True),
        ("2001:db8::/32", "2001:db8:1::1", True),
        ("2001:db8::/32", "10.0.0.1", False),
        ("0:0:0:0:0:0:0:1", "::1", True),
        ("10.0.0.1", "::ffff:10.0.0.1", True),
        ("10.0.0.0/24", "local", False),
    ],
)
def test_hosts_are_addresses_or_networks(pattern: str, host: str, expected: bool) -> None:
    assert may(authorizer_with(acl(host=pattern)), host=host) is expected


def test_a_change_of_the_acls_invalidates_kept_decisions() -> None:
    image, delta = ClusterImage(), MetadataDelta()
    authorizer = StandardAuthorizer((), allow_everyone_if_no_acl_found=False)
    authorizer.apply(image.access_control)
    assert not may(authorizer)
    changed = image.fork()
    changed.replay(acl().to_record(b"1" * 16), delta)
    authorizer.apply(changed.access_control)
    assert may(authorizer)
    authorizer.apply(image.access_control)
    assert not may(authorizer)


def test_an_image_without_changes_shares_its_acls_with_the_previous_one() -> None:
    image = ClusterImage()
    image.replay(acl().to_record(b"1" * 16), MetadataDelta())
    draft = image.fork()
    draft.replay(FeatureLevelRecord("metadata.version", 30), MetadataDelta())
    assert draft.access_control is image.access_control
    draft.replay(acl(WRITE).to_record(b"2" * 16), MetadataDelta())
    assert list(image.access_control) == [b"1" * 16]
    assert len(draft.access_control) == 2


@pytest.mark.parametrize(
    ("acls", "expected"),
    [
        ((), False),
        ((acl(WRITE),), True),
        ((acl(READ),), False),
        ((acl(WRITE), acl(WRITE, permission=DENY)), False),
        ((acl(WRITE), acl(ALL, "ord", PREFIXED, permission=DENY)), False),
        ((acl(WRITE, "or", PREFIXED), acl(ALL, "ord", PREFIXED, permission=DENY)), True),
        ((acl(WRITE, "*"), acl(WRITE, "*", permission=DENY)), False),
        ((acl(WRITE, "*", principal="User:*"), acl(WRITE, "a", permission=DENY)), True),
        ((acl(WRITE, host="10.9.9.9"),), False),
        ((acl(WRITE, resource_type=GROUP),), False),
    ],
)
def test_whether_some_topic_may_be_written_to(acls: tuple[AclBinding, ...], expected: bool) -> None:
    assert authorizer_with(*acls).allows_some(ALICE, HOST, WRITE, TOPIC) is expected


def test_the_cache_of_decisions_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sskafka.metadata.acls.authorizer.DECISIONS_KEPT_MAX", 10)
    authorizer = authorizer_with(acl(name="t", pattern=PREFIXED))
    assert all(may(authorizer, name=f"t{number}") for number in range(100))
    assert len(authorizer._decisions) <= 10


# --- filters ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "pattern", "expected"),
    [
        (None, PatternType.ANY, {"orders", "ord", "*", "pay"}),
        ("orders", PatternType.ANY, {"orders"}),
        ("orders", MATCH, {"orders", "ord", "*"}),
        ("*", MATCH, {"*"}),
        ("ord", LITERAL, set()),
        ("ord", PREFIXED, {"ord"}),
        (None, PREFIXED, {"ord"}),
        (None, LITERAL, {"orders", "*", "pay"}),
    ],
)
def test_filters_select_patterns_as_kafka_does(name: str | None, pattern: PatternType, expected: set[str]) -> None:
    acls = [acl(), acl(name="ord", pattern=PREFIXED), acl(name="*"), acl(name="pay")]
    wanted = AclFilter(ResourceType.ANY, name, pattern, None, None, AclOperation.ANY, AclPermission.ANY)
    assert {item.resource_name for item in acls if wanted.matches(item)} == expected


# --- CreateAcls, DeleteAcls, DescribeAcls -----------------------------------------------------------


def creation(**changes: object) -> AclCreation:
    fields: dict[str, object] = {
        "resource_type": TOPIC,
        "resource_name": "orders",
        "resource_pattern_type": LITERAL,
        "principal": ALICE,
        "host": "*",
        "operation": READ,
        "permission_type": ALLOW,
    }
    return AclCreation(**(fields | changes))  # type: ignore[arg-type]


def create(image: ClusterImage, *creations: AclCreation) -> list[tuple[int, str | None]]:
    ids = numbers()
    result = create_acls(image, CreateAclsRequest(list(creations)), lambda _: next(ids))
    replay(image, result)
    return [(item.error_code, item.error_message) for item in result.response.results]


def replay(image: ClusterImage, result: ControllerResult[object]) -> None:
    for record in result.records:
        image.replay(record, MetadataDelta())


def test_an_acl_is_created_once() -> None:
    image = ClusterImage()
    assert create(image, creation(), creation()) == [(0, None)] * 2
    assert create(image, creation()) == [(0, None)]
    (record,) = image.access_control.values()
    assert record == AccessControlEntryRecord(
        (1).to_bytes(16, "big"), TOPIC, "orders", LITERAL, ALICE, "*", READ, ALLOW
    )


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"resource_type": CLUSTER}, "The only valid name for the CLUSTER resource is kafka-cluster"),
        ({"resource_name": ""}, "Invalid empty resource name"),
        ({"resource_type": ResourceType.ANY}, "Invalid resourceType ANY"),
        ({"resource_type": 99}, "Invalid resourceType UNKNOWN"),
        ({"resource_pattern_type": MATCH}, "Invalid patternType MATCH"),
        ({"operation": AclOperation.ANY}, "Invalid operation ANY"),
        ({"permission_type": AclPermission.ANY}, "Invalid permissionType ANY"),
        ({"host": "10.0.0.0/33"}, "Invalid CIDR notation '10.0.0.0/33'"),
        ({"host": "10.0.0.0/255.0.0.0"}, "Invalid CIDR notation '10.0.0.0/255.0.0.0'"),
        ({"host": "example.com/test"}, "Invalid CIDR notation 'example.com/test'"),
        ({"host": ""}, "Host should not be empty"),
    ],
)
def test_an_invalid_acl_is_refused_and_others_are_created(changes: dict[str, object], text: str) -> None:
    image = ClusterImage()
    assert create(image, creation(**changes), creation()) == [(ErrorCode.INVALID_REQUEST, text), (0, None)]
    assert len(image.access_control) == 1


def test_a_principal_needs_a_type() -> None:
    ((code, text),) = create(ClusterImage(), creation(principal="alice"))
    assert code == ErrorCode.INVALID_REQUEST
    assert text is not None
    assert text.startswith("Could not parse principal from `alice`")


def test_networks_need_a_metadata_version_that_knows_them() -> None:
    image = ClusterImage()
    image.replay(FeatureLevelRecord("metadata.version", 29), MetadataDelta())
    ((code, text),) = create(image, creation(host="10.0.0.0/8"))
    assert (code, text) == (
        ErrorCode.UNSUPPORTED_VERSION,
        "CIDR-based ACL host patterns require metadata version 4.3-IV0 or later.",
    )


def test_a_request_creates_a_bounded_number_of_acls() -> None:
    creations = [creation(resource_name=f"t{number}") for number in range(CHANGES_MAX + 1)]
    results = create(image := ClusterImage(), *creations)
    assert [code for code, _ in results].count(0) == CHANGES_MAX == len(image.access_control)
    assert results[-1][0] == ErrorCode.INVALID_REQUEST


def filter_of(**changes: object) -> DeleteAclsFilter:
    fields: dict[str, object] = {
        "resource_type_filter": ResourceType.ANY,
        "resource_name_filter": None,
        "pattern_type_filter": PatternType.ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": AclOperation.ANY,
        "permission_type": AclPermission.ANY,
    }
    return DeleteAclsFilter(**(fields | changes))  # type: ignore[arg-type]


def test_filters_delete_what_they_match_and_report_it_each() -> None:
    image = ClusterImage()
    create(image, creation(), creation(resource_name="pay"), creation(resource_name="pay", operation=WRITE))
    request = DeleteAclsRequest(
        [filter_of(resource_name_filter="pay"), filter_of(operation=WRITE), filter_of(resource_type_filter=0)]
    )
    result = delete_acls(image, request)
    replay(image, result)
    first, second, third = result.response.filter_results
    assert [(item.resource_name, item.operation) for item in first.matching_acls] == [("pay", READ), ("pay", WRITE)]
    assert [(item.resource_name, item.operation) for item in second.matching_acls] == [("pay", WRITE)]
    assert (third.error_code, third.error_message) == (ErrorCode.INVALID_REQUEST, "Unknown patternFilter.")
    assert [record.resource_name for record in image.access_control.values()] == ["orders"]


def test_a_request_deletes_a_bounded_number_of_acls() -> None:
    image = ClusterImage()
    create(image, *(creation(resource_name=f"t{number}") for number in range(CHANGES_MAX)))
    create_acls(image, CreateAclsRequest([creation(resource_name="more")]), lambda _: b"m" * 16)
    image.replay(acl(name="more").to_record(b"m" * 16), MetadataDelta())
    with pytest.raises(KafkaError, match="Cannot remove more than 10000 acls in a single delete operation"):
        delete_acls(image, DeleteAclsRequest([filter_of()]))


def test_an_acl_counts_for_each_filter_that_it_matches() -> None:
    """The response lists it each time: 500 filters of 4 kB once got 2,500,000 results for 5,000 ACLs."""
    image = ClusterImage()
    create(image, *(creation(resource_name=f"t{number}") for number in range(CHANGES_MAX // 2 + 1)))
    assert len(delete_acls(image, DeleteAclsRequest([filter_of()])).records) == CHANGES_MAX // 2 + 1
    with pytest.raises(KafkaError, match="Cannot remove more than 10000 acls"):
        delete_acls(image, DeleteAclsRequest([filter_of(), filter_of()]))


@pytest.mark.parametrize("field", ["resource_name", "principal", "host"])
def test_a_filter_looks_only_at_acls_that_it_may_match(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """2,000 filters, in 39 kB, once took 6 s to be compared with 5,000 ACLs."""
    image = ClusterImage()
    values = [f"User:{number}" for number in range(30)]
    create(image, *(creation(**{field: value}) for value in values))
    compared: list[AclBinding] = []
    matches = AclFilter.matches

    def noting(wanted: AclFilter, binding: AclBinding) -> bool:
        compared.append(binding)
        return matches(wanted, binding)

    monkeypatch.setattr(AclFilter, "matches", noting)
    filters = [filter_of(**{f"{field}_filter": value}) for value in values]
    results = delete_acls(image, DeleteAclsRequest(filters)).response.filter_results
    assert [[getattr(item, field) for item in result.matching_acls] for result in results] == [[one] for one in values]
    assert len(compared) == len(values)


def test_acls_are_described_by_resource() -> None:
    image = ClusterImage()
    create(image, creation(), creation(operation=WRITE), creation(resource_name="ord", resource_pattern_type=PREFIXED))
    request = DescribeAclsRequest(TOPIC, "orders", MATCH, None, None, AclOperation.ANY, AclPermission.ANY)
    response = describe_acls(image, request)
    described = [
        (item.resource_name, item.pattern_type, [a.operation for a in item.acls]) for item in response.resources
    ]
    assert described == [("ord", PREFIXED, [READ]), ("orders", LITERAL, [READ, WRITE])]
