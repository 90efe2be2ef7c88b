"""The audit log: lines, limits and rotation; and what the broker logs about denied requests."""

import json
import logging
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.model.acl import AclOperation, ResourceType
from sskafka.model.settings import Settings
from sskafka.servers.audit_log import AuditLog
from sskafka.servers.kafka.acl_authorizer import AclAuthorizer

NOON_MS = 1_700_000_000_000


class Context(NamedTuple):
    principal: str = "User:alice"
    host: str = "10.0.0.7"
    client_listener: str = "CLIENTS"
    api_name: str = "Fetch"


class Time:
    def __init__(self) -> None:
        self.ms = NOON_MS

    def now_ms(self) -> int:
        return self.ms


def settings(path: Path, **options: int) -> Settings:
    more = {f"audit.log.{name.replace('_', '.')}": str(value) for name, value in options.items()}
    return Settings.resolve(overrides={"node.id": "1", "audit.log": str(path), **more})


def record(audit: AuditLog, topic: str = "orders", *, is_allowed: bool = True) -> None:
    audit.record(Context(), AclOperation.READ, ResourceType.TOPIC, topic, is_allowed=is_allowed)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_decision_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    audit = AuditLog(settings(path), Time().now_ms)
    record(audit, is_allowed=False)
    audit.close()
    assert lines(path) == [
        {
            "time": "2023-11-14T22:13:20.000Z",
            "principal": "User:alice",
            "host": "10.0.0.7",
            "listener": "CLIENTS",
            "api": "Fetch",
            "operation": "READ",
            "resource_type": "TOPIC",
            "resource": "orders",
            "allowed": False,
        }
    ]


def test_names_cannot_forge_lines(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    audit = AuditLog(settings(path), Time().now_ms)
    record(audit, 'orders"}\n{"allowed": true')
    audit.close()
    assert [line["resource"] for line in lines(path)] == ['orders"}\n{"allowed": true']


def test_lines_above_the_limit_are_counted(tmp_path: Path) -> None:
    path, time = tmp_path / "audit.log", Time()
    audit = AuditLog(settings(path, max_per_second=3), time.now_ms)
    for number in range(10):
        record(audit, str(number))
    time.ms += 1000
    record(audit, "later")
    audit.close()
    assert [line.get("resource", line.get("dropped")) for line in lines(path)] == ["0", "1", "2", 7, "later"]


def test_a_failed_login_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    audit = AuditLog(settings(path), Time().now_ms)
    audit.record_failed_login("CLIENTS", "10.0.0.8", "bob", "PLAIN: Authentication failed")
    audit.close()
    assert lines(path) == [
        {
            "time": "2023-11-14T22:13:20.000Z",
            "user": "bob",
            "host": "10.0.0.8",
            "listener": "CLIENTS",
            "failed_login": "PLAIN: Authentication failed",
        }
    ]


def test_strangers_cannot_keep_decisions_out_of_the_file(tmp_path: Path) -> None:
    path, time = tmp_path / "audit.log", Time()
    audit = AuditLog(settings(path, max_per_second=20), time.now_ms)
    for _ in range(1000):
        audit.record_failed_login("CLIENTS", "10.0.0.8", "x" * 100_000, "PLAIN: Authentication failed")
    record(audit, "orders")
    audit.close()
    written = lines(path)
    assert [len(line["user"]) for line in written if "user" in line] == [1000, 1000]
    assert [line["resource"] for line in written if "resource" in line] == ["orders"]
    assert written[-1]["dropped"] == 998


def test_other_users_of_the_machine_cannot_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    AuditLog(settings(path), Time().now_ms).close()
    assert path.stat().st_mode & 0o007 == 0


def test_a_large_file_is_renamed_and_few_are_kept(tmp_path: Path) -> None:
    path, time = tmp_path / "audit.log", Time()
    for number in range(5):
        audit = AuditLog(settings(path, max_bytes=1024, backups=2), time.now_ms)
        for _ in range(10):
            record(audit, str(number))
        audit.close()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["audit.log", "audit.log.1", "audit.log.2"]
    assert path.read_text() == ""
    assert {line["resource"] for line in lines(tmp_path / "audit.log.1")} == {"4"}
    assert {line["resource"] for line in lines(tmp_path / "audit.log.2")} == {"3"}


def test_denials_are_logged_once_a_minute_for_each_principal(caplog: pytest.LogCaptureFixture) -> None:
    time = Time()
    authorizer = AclAuthorizer(Settings.resolve(overrides={"node.id": "1", "super.users": "User:root"}), time.now_ms)
    authorizer.metadata_changed(MetadataDelta(), ClusterImage())

    def ask(principal: str) -> None:
        authorizer.allows(Context(principal), AclOperation.READ, ResourceType.TOPIC, "orders")

    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            ask("User:alice")
        ask("User:bob")
        ask("User:root")
        authorizer.would_allow(Context("User:carol"), AclOperation.READ, ResourceType.TOPIC, "orders")
        time.ms += 60_000
        ask("User:alice")
    line = "denied: User:{} from 10.0.0.7 may not READ TOPIC orders (Fetch on listener CLIENTS){}"
    assert caplog.messages == [
        line.format("alice", ""),
        line.format("bob", ""),
        line.format("alice", "; 4 more denials since the last line about it"),
    ]
