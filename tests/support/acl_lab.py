"""A broker with StandardAuthorizer on a PLAINTEXT listener, and clients that it tells apart by their address.

Everybody is User:ANONYMOUS there. So an administrator calls from 127.0.0.2, the client whose rights are tested from
127.0.0.3, and the broker itself from 127.0.0.1. The broker starts with allow.everyone.if.no.acl.found; the first ACLs
close it. The same works with Apache Kafka.
"""

import socket
import struct
import time
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any, Self

from acl_requests import GROUP, NAME_OF, TOPIC, TRANSACTIONAL_ID, build

from sskafka.model.acl import AclOperation, AclPermission, PatternType, ResourceType
from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.acl_rules import AclRule, Need
from sskafka.wire.apis import API_BY_KEY, ApiKey
from sskafka.wire.codec import decode, encode
from sskafka.wire.header import decode_response_header, encode_request_header

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "transaction.two.phase.commit.enable": "true",
    "unstable.api.versions.enable": "true",
}
ANONYMOUS = "User:ANONYMOUS"
ADMINISTRATOR, CLIENT, BROKER = "127.0.0.2", "127.0.0.3", "127.0.0.1"
REFUSALS = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
TIMEOUT_S = 20


class AddressedClient:
    """A connection from one of the addresses of this host."""

    def __init__(self, bootstrap: str, source: str, client_id: str = "acl-lab") -> None:
        host, port = bootstrap.rsplit(":", 1)
        self._client_id = client_id
        self._socket = socket.create_connection((host, int(port)), TIMEOUT_S, (source, 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def call(self, message: Any, version: int) -> Any:
        """Return the response. Raise ConnectionError if the broker closes the connection instead."""
        self.send(message, version)
        return self.receive(message, version)

    def send(self, message: Any, version: int) -> None:
        frame = encode_request_header(message.SCHEMA.key, version, 1, self._client_id) + encode(message, version)
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive(self, message: Any, version: int) -> Any:
        """Return the response to `message`, which was sent before."""
        key = message.SCHEMA.key
        answer = self._read(*struct.unpack(">i", self._read(4)))
        _, position = decode_response_header(key, version, answer)
        return decode(API_BY_KEY[key].response_class(), version, answer, position)

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise ConnectionError("the broker closed the connection")
            data += part
        return data


def acl(resource_type: ResourceType, name: str, operation: AclOperation, host: str) -> dict[str, Any]:
    return {
        "resource_type": resource_type,
        "resource_name": name,
        "resource_pattern_type": PatternType.LITERAL,
        "principal": ANONYMOUS,
        "host": host,
        "operation": operation,
        "permission_type": AclPermission.ALLOW,
    }


class AclLab:
    def __init__(self, bootstrap: str, *, makes_resources: bool = True) -> None:
        """`makes_resources`: the broker coordinates every group and transaction."""
        self.bootstrap = bootstrap
        self.administrator = AddressedClient(bootstrap, ADMINISTRATOR)
        self._close_to_others()
        if makes_resources:
            self._make_resources()

    def close(self) -> None:
        self.administrator.__exit__()

    def client(self) -> AddressedClient:
        return AddressedClient(self.bootstrap, CLIENT)

    def ask(self, api: ApiKey, version: int, **values: Any) -> Any:
        return self.administrator.call(build(API_BY_KEY[api].request_class(), values), version)

    def create_acls(self, acls: Iterable[dict[str, Any]]) -> None:
        outcomes = self.ask(ApiKey.CREATE_ACLS, 2, creations=list(acls)).results
        assert all(outcome.error_code == 0 for outcome in outcomes), outcomes

    def grant(self, *needs: Need, topic: str = TOPIC) -> None:
        """Allow the client exactly this, and nothing that was allowed before."""
        self.revoke_all()
        names = NAME_OF | {ResourceType.TOPIC: topic}
        self.create_acls(acl(need.resource_type, names[need.resource_type], need.operation, CLIENT) for need in needs)

    def revoke_all(self) -> None:
        wanted = {
            "resource_type_filter": ResourceType.ANY,
            "resource_name_filter": None,
            "pattern_type_filter": PatternType.ANY,
            "principal_filter": None,
            "host_filter": CLIENT,
            "operation": AclOperation.ANY,
            "permission_type": AclPermission.ANY,
        }
        (result,) = self.ask(ApiKey.DELETE_ACLS, 2, filters=[wanted]).filter_results
        assert result.error_code == 0

    def _close_to_others(self) -> None:
        names = [
            (ResourceType.TOPIC, "*"),
            (ResourceType.GROUP, "*"),
            (ResourceType.TRANSACTIONAL_ID, "*"),
            (ResourceType.CLUSTER, "kafka-cluster"),
        ]
        self.create_acls(
            acl(kind, name, AclOperation.ALL, host) for kind, name in names for host in (ADMINISTRATOR, BROKER)
        )

    def _make_resources(self) -> None:
        """A topic, a group with an offset, and a transactional id, so that lists have something to show."""
        wanted = {"name": TOPIC, "num_partitions": 1, "replication_factor": 1}
        self.ask(ApiKey.CREATE_TOPICS, 7, topics=[wanted], timeout_ms=10_000)
        self._until(lambda: self._make_group() and self._make_transactional_id() and self._read())

    def make_topic(self, name: str) -> None:
        wanted = {"name": name, "num_partitions": 1, "replication_factor": 1}
        self.ask(ApiKey.CREATE_TOPICS, 7, topics=[wanted], timeout_ms=10_000)

    def _make_group(self) -> bool:
        self.ask(ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=[GROUP])
        topics = [{"name": TOPIC, "partitions": [{"partition_index": 0}]}]
        response = self.ask(ApiKey.OFFSET_COMMIT, 8, group_id=GROUP, topics=topics)
        return error_codes(response) == {0}

    def _make_transactional_id(self) -> bool:
        self.ask(ApiKey.FIND_COORDINATOR, 4, key_type=1, coordinator_keys=[TRANSACTIONAL_ID])
        response = self.ask(
            ApiKey.INIT_PRODUCER_ID, 4, transactional_id=TRANSACTIONAL_ID, transaction_timeout_ms=10_000
        )
        return error_codes(response) == {0}

    def restore(self) -> None:
        """Make the resources again that a test has deleted."""
        self.make_topic(TOPIC)
        self._until(lambda: self._make_group() and self._read())

    def _read(self) -> bool:
        partitions = [{"partition": 0, "partition_max_bytes": 1000}]
        response = self.ask(ApiKey.FETCH, 12, topics=[{"topic": TOPIC, "partitions": partitions}])
        return error_codes(response) == {0}

    @staticmethod
    def _until(condition: Any) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.05)


def error_codes(response: Any) -> set[int]:
    """Return every error code in a response, wherever it is."""
    found: set[int] = set()
    if is_dataclass(response):
        for field in fields(response):
            value = getattr(response, field.name)
            if field.name.endswith("error_code"):
                found.add(value)
            else:
                found |= error_codes(value)
    elif isinstance(response, list):
        for item in response:
            found |= error_codes(item)
    return found


def names_in(response: Any) -> set[str]:
    """Return every text in a response."""
    if isinstance(response, str):
        return {response}
    if is_dataclass(response):
        return set().union(*(names_in(getattr(response, field.name)) for field in fields(response)))
    return set().union(*map(names_in, response)) if isinstance(response, list) else set()


def is_refused(rule: AclRule, response: Any, missing: Need | None) -> bool:
    """Return whether the response says that the right is missing, as the rule says; None: any right."""
    if rule.is_filter:
        shown = {TOPIC, GROUP, TRANSACTIONAL_ID} & names_in(response)
        return not shown
    codes = error_codes(response)
    if missing is None:
        return not REFUSALS.isdisjoint(codes)
    return rule.error_without(missing) in codes
