"""The `sskafka acl` commands as users run them."""

import json
from collections.abc import Iterator
from subprocess import CompletedProcess
from typing import Any

import pytest
from broker_process import BrokerProcess
from command_line import run_sskafka

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = {"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS"}
    broker = BrokerProcess(tmp_path_factory.mktemp("acls"), settings)
    try:
        yield broker.start()
    finally:
        broker.close()


def acl(bootstrap: str, *arguments: str, exit_code: int = 0) -> CompletedProcess[str]:
    ended = run_sskafka("acl", *arguments, "-b", bootstrap)
    assert ended.returncode == exit_code, ended.stderr
    return ended


def found(bootstrap: str, *arguments: str) -> Any:
    return json.loads(acl(bootstrap, *arguments, "--json").stdout)


def test_the_life_of_acls(broker: BrokerProcess) -> None:
    bootstrap = broker.bootstrap
    reader = ("--allow-principal", "User:alice", "--consumer", "--topic", "orders", "--group", "billing")
    assert {one["change"] for one in found(bootstrap, "add", *reader, "--dry-run")} == {"would be added"}
    assert found(bootstrap, "list") == []
    assert [one["change"] for one in found(bootstrap, "add", *reader)] == ["added"] * 3
    assert [one["change"] for one in found(bootstrap, "add", *reader)] == ["exists"] * 3
    acl(bootstrap, "add", "--deny-principal", "bob", "--operation", "Write", "--topic", "ord", *PREFIXED)
    rows = [line.split() for line in acl(bootstrap, "list", "--principal", "bob").stdout.splitlines()]
    assert rows[0] == ["PRINCIPAL", "HOST", "PERMISSION", "OPERATION", "RESOURCE", "NAME", "PATTERN"]
    assert rows[1:] == [["User:bob", "*", "DENY", "WRITE", "TOPIC", "ord", "PREFIXED"]]
    of_topic = ("--topic", "orders")
    assert {one["principal"] for one in found(bootstrap, "list", *of_topic)} == {"User:alice"}
    matching = found(bootstrap, "list", *of_topic, "--resource-pattern-type", "match")
    assert {one["principal"] for one in matching} == {"User:alice", "User:bob"}
    planned = found(bootstrap, "remove", "--principal", "alice", *of_topic, "--dry-run")
    assert {(one["operation"], one["change"]) for one in planned} == {
        ("READ", "would be removed"),
        ("DESCRIBE", "would be removed"),
    }
    assert len(found(bootstrap, "list")) == 4
    assert len(found(bootstrap, "remove", "--yes", *reader)) == 3
    assert len(found(bootstrap, "remove", "--deny-principal", "bob", "--force")) == 1
    assert "no ACL matches" in acl(bootstrap, "remove", "--deny-principal", "bob").stderr
    assert found(bootstrap, "list") == []


PREFIXED = ("--resource-pattern-type", "prefixed")


def test_nobody_removes_all_acls_by_mistake(broker: BrokerProcess) -> None:
    assert "name a principal" in acl(broker.bootstrap, "remove", exit_code=2).stderr
    assert "name a resource" in acl(broker.bootstrap, "add", "--allow-principal", "a", exit_code=2).stderr


def test_a_broker_without_an_authorizer_says_how_to_turn_acls_on(bootstrap: str) -> None:
    assert "authorizer.class.name" in acl(bootstrap, "list", exit_code=1).stderr
