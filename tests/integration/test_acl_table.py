"""Every API of the table of ACLs: allowed with exactly the documented ACLs, refused without any one of them."""

from collections.abc import Iterator

import pytest
from acl_lab import SETTINGS, AclLab, error_codes, is_refused
from acl_requests import NEW_TOPIC, TOPIC, request_for
from broker_process import BrokerProcess

from sskafka.servers.kafka.acl_rules import RULES, UNCHECKED, AclRule, Need
from sskafka.wire.apis import API_BY_KEY, ApiKey, Listeners

DELETES = {ApiKey.DELETE_TOPICS, ApiKey.DELETE_GROUPS, ApiKey.OFFSET_DELETE}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AclLab]:
    broker = BrokerProcess(tmp_path_factory.mktemp("acls"), SETTINGS)
    try:
        lab = AclLab(broker.start().bootstrap)
        yield lab
        lab.close()
    finally:
        broker.close()


def rule_name(rule: AclRule) -> str:
    return f"{API_BY_KEY[rule.api].name} {rule.case}".strip()


@pytest.mark.parametrize("rule", RULES, ids=rule_name)
def test_an_api_needs_exactly_what_the_table_says(lab: AclLab, rule: AclRule) -> None:
    message, version = request_for(rule.api, rule.case)
    topic = TOPIC

    def refused(granted: tuple[Need, ...], missing: Need | None) -> bool:
        lab.grant(*granted, topic=topic)
        with lab.client() as client:
            response = client.call(message, version)
        return is_refused(rule, response, missing)

    for number, alternative in enumerate(rule.alternatives):
        if rule.case == "that creates a topic":
            topic = message.topics[0].name = f"{NEW_TOPIC}-{number}"
        for missing in alternative:
            rest = tuple(need for need in alternative if need is not missing)
            assert refused(rest, missing), f"without {missing}"
        assert not refused(alternative, None), f"with {alternative}"
        if rule.api in DELETES:
            lab.restore()


def test_every_api_of_broker_listeners_is_in_the_table() -> None:
    served = {api.key for api in API_BY_KEY.values() if api.listeners & (Listeners.BROKER | Listeners.UNLISTED)}
    ruled = {rule.api for rule in RULES}
    assert ruled | set(UNCHECKED) == served | {ApiKey.UPDATE_RAFT_VOTER}
    assert not ruled & set(UNCHECKED)


def test_the_table_names_the_cluster_operations_that_connections_check() -> None:
    checked = {api.key: api.operation for api in API_BY_KEY.values() if api.operation is not None}
    for rule in RULES:
        operations = {need.operation for alternative in rule.alternatives for need in alternative}
        if rule.api in checked:
            assert operations == {checked[rule.api]}, rule_name(rule)


@pytest.mark.parametrize(("key", "reason"), UNCHECKED.items(), ids=lambda value: getattr(value, "name", ""))
def test_an_unchecked_api_needs_no_acl(lab: AclLab, key: ApiKey, reason: str) -> None:
    if key in {ApiKey.UPDATE_RAFT_VOTER, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}:
        return  # not served on this listener
    lab.revoke_all()
    with lab.client() as client:
        codes = error_codes(client.call(*request_for(key, "")))
    assert codes.isdisjoint({29, 30, 31, 53}), reason
