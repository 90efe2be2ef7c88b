"""TLS, users and ACLs of brokers on this machine: certificates of a private authority, and the settings.

Users may log in with PLAIN and with SCRAM. Brokers connect to each other as a super user of their own, whose password
only they have. Nodes of a new cluster cannot use SCRAM between each other: its credentials are in the
metadata log, which they do not have yet.
"""

import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from sskafka.client.acl_rules import AclResources, AclRule
from sskafka.client.client_login import jaas_text, jaas_user_option
from sskafka.client.errors import broker_error
from sskafka.metadata.acls.binding import AclBinding
from sskafka.model.errors import ErrorCode
from sskafka.model.listeners import HTTP_NAME
from sskafka.model.security.jaas import PLAIN_LOGIN_MODULE
from sskafka.model.security.mechanisms import PLAIN
from sskafka.model.security.scram import SCRAM_MECHANISMS
from sskafka.model.settings_table.security import STANDARD_AUTHORIZER
from sskafka.runtime.tls.authority import CA_CERTIFICATE, CertificateAuthority, write_private
from sskafka.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from sskafka.wire.messages.create_acls import AclCreation, CreateAclsRequest

BROKER_USER = "sskafka-broker"
"""The user as which brokers authenticate to each other."""
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
ITERATIONS = 4096
_SALT_BYTES = 20
_TIMEOUT_MS = 30_000


class ControllerClient(Protocol):
    async def ask_controller(self, request: Any, timeout_ms: int) -> Any: ...


def make_certificates(directory: Path, node: str, hosts: Sequence[str] = LOCAL_HOSTS) -> Path:
    """Return the key store of a node. The authority of the directory issues it; a missing authority is created."""
    now = datetime.now(UTC)
    if not (directory / CA_CERTIFICATE).exists():
        CertificateAuthority.create("SSKafka CA", now).save(directory)
    key_store = directory / f"{node}.pem"
    write_private(key_store, CertificateAuthority.load(directory).issue_node(node, hosts, now))
    return key_store


def tls_settings(key_store: Path) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(key_store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(key_store.parent / CA_CERTIFICATE),
    }


def sasl_settings(listener: str, users: Mapping[str, str], broker_password: str) -> dict[str, str]:
    """Return the settings of a listener with these users. Raise ValueError for a user that SASL cannot have."""
    known = {**users, BROKER_USER: broker_password}
    options = " ".join(jaas_user_option(user, password) for user, password in known.items())
    login = f"username={jaas_text(BROKER_USER)} password={jaas_text(broker_password)}"
    return {
        "sasl.enabled.mechanisms": ",".join((PLAIN, *SCRAM_MECHANISMS)),
        "sasl.mechanism.inter.broker.protocol": PLAIN,
        f"listener.name.{listener.lower()}.plain.sasl.jaas.config": f"{PLAIN_LOGIN_MODULE} required {login} {options};",
    }


def http_settings(protocol: str) -> dict[str, str]:
    """Return the settings of an HTTP server that has the protocol of the Kafka listener, and its users."""
    return {
        "http.security.protocol": protocol,
        f"listener.name.{HTTP_NAME.lower()}.sasl.enabled.mechanisms": ",".join(SCRAM_MECHANISMS),
    }


def authorizer_settings(super_users: Sequence[str] = ()) -> dict[str, str]:
    names = ";".join(f"User:{user}" for user in (BROKER_USER, *super_users))
    return {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": names}


def new_password() -> str:
    return secrets.token_urlsafe(24)


def acl_bindings(rule: Mapping[str, object]) -> list[AclBinding]:
    """Return the ACLs of a rule whose keys are the options of kafka-acls.

        {"allow_principal": "alice", "operation": ["Read", "Describe"], "topic": "orders"}

    Raise AclRuleError if the parts make no ACL, and ValueError for a key that does not exist."""
    texts = {"allow_principal", "deny_principal", "allow_host", "deny_host", "operation"}
    resources = {"topic", "group", "transactional_id", "delegation_token", "user_principal"}
    flags = {"producer", "consumer", "idempotent"}
    unknown = sorted(rule.keys() - texts - resources - flags - {"cluster", "resource_pattern_type"})
    if unknown:
        raise ValueError(f"an ACL has no {', '.join(map(repr, unknown))}; the keys are the options of kafka-acls")
    named: dict[str, Any] = {f"{key}s": _texts(rule[key]) for key in resources & rule.keys()}
    pattern_type = str(rule.get("resource_pattern_type", "literal"))
    where = AclResources(**named, cluster=bool(rule.get("cluster")), resource_pattern_type=pattern_type)
    options: dict[str, Any] = {f"{key}s": _texts(rule[key]) for key in texts & rule.keys()}
    options |= {key: bool(rule[key]) for key in flags & rule.keys()}
    return AclRule(where, **options).bindings()


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list | tuple | set) else (str(value),)


async def add_users(broker: ControllerClient, users: Mapping[str, str]) -> None:
    """Set the SCRAM credentials of the users, as the broker itself. Raise KafkaError if one is refused."""
    for mechanism in SCRAM_MECHANISMS.values():
        upsertions = []
        for user, password in users.items():
            salt = secrets.token_bytes(_SALT_BYTES)
            salted = mechanism.salted_password(password, salt, ITERATIONS)
            upsertions.append(ScramCredentialUpsertion(user, mechanism.code, ITERATIONS, salt, salted))
        request = AlterUserScramCredentialsRequest(upsertions=upsertions)
        _check((await broker.ask_controller(request, _TIMEOUT_MS)).results)


async def add_acls(broker: ControllerClient, bindings: Sequence[AclBinding]) -> None:
    """Create the ACLs, as the broker itself. Raise KafkaError if one is refused."""
    request = CreateAclsRequest([AclCreation(*binding) for binding in bindings])
    _check((await broker.ask_controller(request, _TIMEOUT_MS)).results)


def _check(results: Sequence[Any]) -> None:
    for result in results:
        if result.error_code != ErrorCode.NONE:
            raise broker_error(result.error_code, result.error_message)
