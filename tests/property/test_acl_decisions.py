"""Decisions from the index of ACLs, with their cache, equal those of a reference that reads every ACL each time."""

from ipaddress import ip_address, ip_network

from hypothesis import given
from hypothesis import strategies as st

from sskafka.metadata.acls.authorizer import StandardAuthorizer
from sskafka.metadata.acls.binding import AclBinding
from sskafka.metadata.records import AccessControlEntryRecord
from sskafka.model.acl import AclOperation, AclPermission, PatternType, ResourceType

Records = dict[bytes, AccessControlEntryRecord]

PRINCIPALS = ["User:alice", "User:bob", "User:*", "Group:alice"]
CALLERS = ["User:alice", "User:bob", "User:root", "Group:alice", "User:nobody"]
HOSTS = ["*", "10.0.0.1", "10.0.0.0/24", "10.0.0.0/8", "0.0.0.0/0", "::1", "2001:db8::/32", "no/network"]
PEERS = ["10.0.0.1", "10.0.1.1", "::1", "0:0:0:0:0:0:0:1", "::ffff:10.0.0.1", "2001:db8::7"]
NAMES = ["*", "a", "ab", "abc", "abcd", "b", "ba"]
ASKED_NAMES = ["a", "ab", "abc", "abcd", "abcde", "b", "ba", "c"]
OPERATIONS = [operation for operation in AclOperation if operation > AclOperation.ANY]
ASKED_OPERATIONS = [operation for operation in AclOperation if operation > AclOperation.ALL]
TYPES = [ResourceType.TOPIC, ResourceType.GROUP]

bindings = st.builds(
    AclBinding,
    st.sampled_from(TYPES),
    st.sampled_from(NAMES),
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    st.sampled_from(PRINCIPALS),
    st.sampled_from(HOSTS),
    st.sampled_from(OPERATIONS),
    st.sampled_from([AclPermission.ALLOW, AclPermission.ALLOW, AclPermission.DENY]),
)
acl_sets = st.lists(bindings, max_size=12, unique=True)
questions = st.tuples(
    st.sampled_from(CALLERS),
    st.sampled_from(PEERS),
    st.sampled_from(ASKED_OPERATIONS),
    st.sampled_from(TYPES),
    st.sampled_from(ASKED_NAMES),
)
IMPLIED = {
    AclOperation.DESCRIBE: {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER},
    AclOperation.DESCRIBE_CONFIGS: {AclOperation.ALTER_CONFIGS},
}


def records_of(acls: list[AclBinding]) -> Records:
    """Give equal ACLs equal ids, as a log does that keeps an ACL while others change."""
    return {acl_id: acl.to_record(acl_id) for acl in acls if (acl_id := repr(acl).encode())}


def same_host(acl_host: str, peer: str) -> bool:
    address = ip_address(peer)
    address = getattr(address, "ipv4_mapped", None) or address
    if acl_host == "*":
        return True
    if "/" in acl_host:
        return acl_host != "no/network" and address in ip_network(acl_host)
    return ip_address(acl_host) == address


def same_operation(acl: AclBinding, operation: AclOperation) -> bool:
    if acl.operation in (AclOperation.ALL, operation):
        return True
    return acl.permission == AclPermission.ALLOW and acl.operation in IMPLIED.get(operation, set())


def reference(
    acls: list[AclBinding],
    everyone: bool,
    question: tuple[str, str, AclOperation, ResourceType, str],
) -> bool:
    principal, peer, operation, resource_type, name = question
    if principal == "User:root":
        return True
    of_resource = [
        acl
        for acl in acls
        if acl.resource_type == resource_type
        and (
            name.startswith(acl.resource_name)
            if acl.pattern_type == PatternType.PREFIXED
            else acl.resource_name in (name, "*")
        )
    ]
    if not of_resource:
        return everyone
    matching = [
        acl
        for acl in of_resource
        if acl.principal in (principal, "User:*") and same_host(acl.host, peer) and same_operation(acl, operation)
    ]
    permissions = {acl.permission for acl in matching}
    return AclPermission.DENY not in permissions and AclPermission.ALLOW in permissions


@given(st.lists(acl_sets, min_size=1, max_size=4), st.lists(questions, min_size=1, max_size=20), st.booleans())
def test_decisions_equal_the_reference_after_every_change(
    history: list[list[AclBinding]],
    asked: list[tuple[str, str, AclOperation, ResourceType, str]],
    everyone: bool,
) -> None:
    authorizer = StandardAuthorizer(["User:root"], allow_everyone_if_no_acl_found=everyone)
    for acls in history:
        authorizer.apply(records_of(acls))
        for question in asked + asked:  # the second time, the answer comes from the cache
            assert authorizer.allows(*question) == reference(acls, everyone, question), question


@given(acl_sets, st.sampled_from(CALLERS), st.sampled_from(PEERS), st.booleans())
def test_some_topic_is_allowed_only_if_a_resource_is(
    acls: list[AclBinding], principal: str, peer: str, everyone: bool
) -> None:
    """The question about a whole type may not say yes where no resource can be allowed."""
    authorizer = StandardAuthorizer(["User:root"], allow_everyone_if_no_acl_found=everyone)
    authorizer.apply(records_of(acls))
    probes = {name + tail for name in [*NAMES, *ASKED_NAMES, "hardcode", "zzz"] for tail in ("", "~")}
    some = any(
        reference(acls, everyone, (principal, peer, AclOperation.WRITE, ResourceType.TOPIC, name)) for name in probes
    )
    if authorizer.allows_some(principal, peer, AclOperation.WRITE, ResourceType.TOPIC):
        assert some
