"""ACLs: what each API needs, on Apache Kafka and on SSKafka, and Apache Kafka's kafka-acls against both."""

import time
from collections.abc import Callable, Iterator

import pytest
from acl_lab import SETTINGS, AclLab, is_refused
from acl_requests import NEW_TOPIC, TOPIC, request_for
from benchmarks.brokers import BrokerKind
from programs import APACHE_KAFKA, SSKAFKA, JavaTools

from sskafka.servers.kafka.acl_rules import RULES, AclRule, Need
from sskafka.wire.apis import API_BY_KEY, ApiKey
from sskafka.wire.messages.api_versions import ApiVersionsRequest

ACLS = "org.apache.kafka.tools.AclCommand"
PATIENCE_S = 10
DELETES = {ApiKey.DELETE_TOPICS, ApiKey.DELETE_GROUPS, ApiKey.OFFSET_DELETE}
SHARE_STATE = {key for key in ApiKey if "SHARE_GROUP_STATE" in key.name}


@pytest.fixture(scope="module", params=[APACHE_KAFKA, SSKAFKA])
def lab(
    request: pytest.FixtureRequest,
    broker_kind: Callable[[str], BrokerKind],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[AclLab]:
    with broker_kind(request.param).running(tmp_path_factory.mktemp("acls"), SETTINGS) as running:
        lab = AclLab(running.bootstrap)
        yield lab
        lab.close()


@pytest.fixture(scope="module")
def served(lab: AclLab) -> dict[int, int]:
    """The highest version of each API that the broker lists."""
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    return {api.api_key: api.max_version for api in lab.administrator.call(request, 3).api_keys}


def soon(condition: Callable[[], bool]) -> bool:
    """Return whether the condition is met before long: ACLs reach a broker of Apache Kafka a moment later."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{API_BY_KEY[rule.api].name} {rule.case}".strip())
def test_both_need_what_the_table_says(lab: AclLab, served: dict[int, int], rule: AclRule) -> None:
    message, version = request_for(rule.api, rule.case)
    if served.get(rule.api, -1) < version or rule.api in SHARE_STATE or rule.case == "of the metadata log":
        return  # between nodes, on listeners of their own; SSKafka's own; or a feature that is off
    topic = TOPIC

    def refused(missing: Need | None) -> bool:
        with lab.client() as client:
            return is_refused(rule, client.call(message, version), missing)

    for number, alternative in enumerate(rule.alternatives):
        if rule.case == "that creates a topic":
            topic = message.topics[0].name = f"{NEW_TOPIC}-{number}"
        for missing in alternative:
            lab.grant(*(need for need in alternative if need is not missing), topic=topic)
            assert soon(lambda missing=missing: refused(missing)), f"without {missing}"
        lab.grant(*alternative, topic=topic)
        assert soon(lambda: not refused(None)), f"with {alternative}"
        if rule.api in DELETES:
            lab.restore()


def test_kafka_acls_adds_lists_and_removes(
    lab: AclLab, java: JavaTools, tmp_path_factory: pytest.TempPathFactory
) -> None:
    at = ("--bootstrap-server", lab.bootstrap)
    rule = ("--allow-principal", "User:alice", "--allow-host", "10.0.0.1", "--operation", "Read")
    java.run(ACLS, *at, "--add", *rule, "--topic", "tool-", "--resource-pattern-type", "prefixed")
    java.run(ACLS, *at, "--add", "--deny-principal", "User:bob", "--operation", "All", "--group", "*")
    listed = java.run(ACLS, *at, "--list", "--topic", "tool-orders", "--resource-pattern-type", "match")
    assert "(principal=User:alice, host=10.0.0.1, operation=READ, permissionType=ALLOW)" in listed
    assert "name=tool-, patternType=PREFIXED" in listed
    listed = java.run(ACLS, *at, "--list", "--principal", "User:bob")
    assert "(principal=User:bob, host=*, operation=ALL, permissionType=DENY)" in listed
    java.run(ACLS, *at, "--remove", "--force", "--topic", "tool-", "--resource-pattern-type", "prefixed")
    assert "User:alice" not in java.run(ACLS, *at, "--list")
