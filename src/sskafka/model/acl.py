"""Codes of Kafka's access control lists: operations, types of resources and patterns, permissions."""

from enum import IntEnum
from typing import NamedTuple


class AclOperation(IntEnum):
    UNKNOWN = 0
    ANY = 1
    """Only in filters."""
    ALL = 2
    """Only in ACLs: every operation."""
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ResourceType(IntEnum):
    UNKNOWN = 0
    ANY = 1
    """Only in filters."""
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    UNKNOWN = 0
    ANY = 1
    """Only in filters: patterns of both types that have the name of the filter."""
    MATCH = 2
    """Only in filters: patterns that apply to the name of the filter."""
    LITERAL = 3
    PREFIXED = 4


class AclPermission(IntEnum):
    UNKNOWN = 0
    ANY = 1
    """Only in filters."""
    DENY = 2
    ALLOW = 3


CLUSTER_NAME = "kafka-cluster"
"""The name of the only resource of type CLUSTER."""
ANONYMOUS = "User:ANONYMOUS"
"""The principal of a connection without authentication."""
WILDCARD = "*"
"""Every resource of a type, every host; `User:*` is every principal."""


class AuthorizerNotReadyError(Exception):
    """The ACLs have not been read from the metadata log yet."""


class Caller(NamedTuple):
    """The client that sent a request, as an Envelope describes it to the controller."""

    principal: str
    host: str
    """The address of the client as text."""
    client_id: str = ""
    is_token_authenticated: bool = False
    """Whether the client has logged in with a delegation token."""
