"""ACLs from the options of kafka-acls."""

import pytest

from sskafka.client.acl_rules import AclResources, AclRule, AclRuleError, acl_filters, exact_filter, parse_code
from sskafka.metadata.acls.binding import AclBinding
from sskafka.model.acl import AclOperation, AclPermission, PatternType, ResourceType

ALLOW, DENY = AclPermission.ALLOW, AclPermission.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED


def operations_on(rule: AclRule) -> set[tuple[str, str, str]]:
    return {
        (ResourceType(one.resource_type).name, one.resource_name, AclOperation(one.operation).name)
        for one in rule.bindings()
    }


def test_a_rule_is_every_combination_of_principal_host_operation_and_resource() -> None:
    rule = AclRule(
        AclResources(topics=("a", "b"), resource_pattern_type="prefixed"),
        allow_principals=("alice", "User:bob"),
        allow_hosts=("10.0.0.1", "10.1.0.0/16"),
        operations=("Read",),
    )
    assert set(rule.bindings()) == {
        AclBinding(ResourceType.TOPIC, topic, PREFIXED, principal, host, AclOperation.READ, ALLOW)
        for topic in ("a", "b")
        for principal in ("User:alice", "User:bob")
        for host in ("10.0.0.1", "10.1.0.0/16")
    }


def test_allowed_and_denied_principals_have_their_own_hosts() -> None:
    rule = AclRule(
        AclResources(groups=("g",)), allow_principals=("User:a",), deny_principals=("User:b",), deny_hosts=("10.0.0.1",)
    )
    assert rule.bindings() == [
        AclBinding(ResourceType.GROUP, "g", LITERAL, "User:a", "*", AclOperation.ALL, ALLOW),
        AclBinding(ResourceType.GROUP, "g", LITERAL, "User:b", "10.0.0.1", AclOperation.ALL, DENY),
    ]


def test_the_cluster_has_a_literal_pattern_also_beside_prefixes() -> None:
    resources = AclResources(topics=("t",), cluster=True, resource_pattern_type="prefixed")
    patterns = {one.resource_type: one.pattern_type for one in AclRule(resources, ("User:a",)).bindings()}
    assert patterns == {ResourceType.TOPIC: PREFIXED, ResourceType.CLUSTER: LITERAL}


def test_a_producer_needs_what_kafka_acls_gives_it() -> None:
    resources = AclResources(topics=("t",), transactional_ids=("x",))
    assert operations_on(AclRule(resources, ("User:a",), producer=True, idempotent=True)) == {
        ("TOPIC", "t", "WRITE"),
        ("TOPIC", "t", "DESCRIBE"),
        ("TOPIC", "t", "CREATE"),
        ("TRANSACTIONAL_ID", "x", "WRITE"),
        ("TRANSACTIONAL_ID", "x", "DESCRIBE"),
        ("CLUSTER", "kafka-cluster", "IDEMPOTENT_WRITE"),
    }


def test_a_consumer_needs_what_kafka_acls_gives_it() -> None:
    assert operations_on(AclRule(AclResources(topics=("t",), groups=("g",)), ("User:a",), consumer=True)) == {
        ("TOPIC", "t", "READ"),
        ("TOPIC", "t", "DESCRIBE"),
        ("GROUP", "g", "READ"),
    }


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        (AclRule(AclResources(topics=("t",))), "name a principal"),
        (AclRule(AclResources(), ("User:a",)), "name a resource"),
        (AclRule(AclResources(topics=("t",), resource_pattern_type="match"), ("User:a",)), "literal or prefixed"),
        (AclRule(AclResources(topics=("t",), resource_pattern_type="regex"), ("User:a",)), "literal or prefixed"),
        (AclRule(AclResources(groups=("g",)), ("User:a",), operations=("Write",)), "WRITE does not apply to GROUP"),
        (AclRule(AclResources(topics=("t",)), ("User:a",), operations=("Reed",)), "'Reed' is not one of"),
        (AclRule(AclResources(topics=("t",)), ("User:a",), operations=("Unknown",)), "'Unknown' is not one of"),
        (AclRule(AclResources(topics=("t",)), ("User:a",), consumer=True), "a topic and a group"),
        (AclRule(AclResources(groups=("g",)), ("User:a",), producer=True), "needs a topic"),
        (AclRule(AclResources(topics=("t",), cluster=True), ("User:a",), producer=True), "a producer has topics"),
        (AclRule(AclResources(topics=("t",)), ("User:a",), operations=("Read",), producer=True), "do not name operat"),
        (AclRule(AclResources(topics=("t",)), (), ("User:a",), producer=True), "only be allowed"),
    ],
)
def test_what_makes_no_acl_is_refused(rule: AclRule, problem: str) -> None:
    with pytest.raises(AclRuleError, match=problem):
        rule.bindings()


@pytest.mark.parametrize("word", ["DescribeConfigs", "describe_configs", "DESCRIBE-CONFIGS"])
def test_words_in_every_spelling(word: str) -> None:
    assert parse_code(AclOperation, word) is AclOperation.DESCRIBE_CONFIGS


def test_filters_leave_open_what_is_not_named() -> None:
    (everything,) = acl_filters(AclResources())
    topic, group = acl_filters(AclResources(topics=("t",), groups=("g",)), ["alice"], ["read"], DENY)
    bindings = AclRule(AclResources(topics=("t", "other"), groups=("g",)), ("bob",), ("alice",)).bindings()
    reads = AclRule(AclResources(topics=("t", "other"), groups=("g",)), ("alice",), ("alice",), operations=("Read",))
    assert all(everything.matches(binding) for binding in bindings)
    assert [one for one in (*bindings, *reads.bindings()) if topic.matches(one) or group.matches(one)] == [
        AclBinding(ResourceType.TOPIC, "t", LITERAL, "User:alice", "*", AclOperation.READ, DENY),
        AclBinding(ResourceType.GROUP, "g", LITERAL, "User:alice", "*", AclOperation.READ, DENY),
    ]
    assert [one for one in bindings if exact_filter(bindings[0]).matches(one)] == [bindings[0]]
