"""The `sskafka user` and `sskafka quota` commands as users run them."""

import json
from subprocess import CompletedProcess
from typing import Any

from command_line import run_sskafka

PASSWORD = "correct horse battery"


def sskafka(bootstrap: str, *arguments: str, stdin: str = "", exit_code: int = 0) -> CompletedProcess[str]:
    ended = run_sskafka(*arguments, "-b", bootstrap, stdin=stdin)
    assert ended.returncode == exit_code, ended.stderr
    assert PASSWORD not in ended.stdout + ended.stderr
    return ended


def found(bootstrap: str, *arguments: str) -> Any:
    return json.loads(sskafka(bootstrap, *arguments, "--json").stdout)


def test_the_life_of_a_user(bootstrap: str, topic: str) -> None:
    name = topic
    with_password = ("--password-file", "-")
    planned = found(bootstrap, "user", "add", name, "--mechanism", "scram-sha-256", "--dry-run")
    assert planned == [{"user": name, "mechanism": "SCRAM-SHA-256", "change": "would be added"}]
    assert found(bootstrap, "user", "list", name) == []
    sskafka(bootstrap, "user", "add", name, *with_password, "--iterations", "5000", stdin=f"{PASSWORD}\n")
    assert found(bootstrap, "user", "list", name) == [
        {"user": name, "mechanism": "SCRAM-SHA-256", "iterations": 5000},
        {"user": name, "mechanism": "SCRAM-SHA-512", "iterations": 5000},
    ]
    again = sskafka(bootstrap, "user", "add", name, *with_password, stdin=PASSWORD, exit_code=1)
    assert f"sskafka user set-password {name}" in again.stderr
    sskafka(bootstrap, "user", "remove", name, "--mechanism", "SCRAM-SHA-256", "--yes")
    sskafka(bootstrap, "user", "set-password", name, *with_password, stdin=PASSWORD)
    assert found(bootstrap, "user", "list", name) == [{"user": name, "mechanism": "SCRAM-SHA-512", "iterations": 8192}]
    assert found(bootstrap, "user", "remove", name, "--yes")[0]["change"] == "removed"
    assert "no user" in sskafka(bootstrap, "user", "remove", name, exit_code=1).stderr


def test_a_password_comes_from_somewhere(bootstrap: str, topic: str) -> None:
    assert "--password-file" in sskafka(bootstrap, "user", "add", topic, exit_code=2).stderr
    assert "empty" in sskafka(bootstrap, "user", "add", topic, "--password", "", exit_code=2).stderr


def test_the_life_of_a_quota(bootstrap: str, topic: str) -> None:
    of_user = ("--user", topic)
    both = (*of_user, "--client-id", "app")
    sskafka(bootstrap, "quota", "set", "producer_byte_rate=1000", *of_user, "--dry-run")
    assert found(bootstrap, "quota", "list", *of_user) == []
    sskafka(bootstrap, "quota", "set", "producer_byte_rate=1000", "request_percentage=12.5", *of_user)
    sskafka(bootstrap, "quota", "set", "consumer_byte_rate=2000", *both)
    sskafka(bootstrap, "quota", "set", "consumer_byte_rate=3000", *of_user, "--client-defaults")
    assert found(bootstrap, "quota", "list", *of_user) == [
        {"entity": {"client-id": None, "user": topic}, "limits": {"consumer_byte_rate": 3000.0}},
        {"entity": {"client-id": "app", "user": topic}, "limits": {"consumer_byte_rate": 2000.0}},
        {"entity": {"user": topic}, "limits": {"producer_byte_rate": 1000.0, "request_percentage": 12.5}},
    ]
    rows = [line.split() for line in sskafka(bootstrap, "quota", "list", *both).stdout.splitlines()]
    assert rows == [["USER", "CLIENT-ID", "IP", "QUOTA", "LIMIT"], [topic, "app", "-", "consumer_byte_rate", "2000"]]
    sskafka(bootstrap, "quota", "remove", "request_percentage", *of_user, "--yes")
    missing = sskafka(bootstrap, "quota", "remove", "request_percentage", *of_user, exit_code=1)
    assert f"user {topic} has no request_percentage" in missing.stderr
    for entity in (of_user, both, (*of_user, "--client-defaults")):
        sskafka(bootstrap, "quota", "remove", *entity, "--yes")
    assert found(bootstrap, "quota", "list", *of_user) == []


def test_wrong_quotas_are_refused(bootstrap: str) -> None:
    sskafka(bootstrap, "quota", "set", "producer_byte_rate=1", exit_code=2)
    sskafka(bootstrap, "quota", "set", "producer_bytes=1", "--user", "u", exit_code=2)
    sskafka(bootstrap, "quota", "set", "producer_byte_rate=fast", "--user", "u", exit_code=2)
    sskafka(bootstrap, "quota", "set", "producer_byte_rate=1", "--user", "u", "--user-defaults", exit_code=2)
    refused = sskafka(bootstrap, "quota", "set", "producer_byte_rate=1", "--ip", "10.0.0.1", exit_code=1)
    assert "Invalid configuration key producer_byte_rate" in refused.stderr
