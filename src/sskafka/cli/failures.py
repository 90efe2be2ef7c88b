"""Failures in words: what went wrong and what to do next."""

import sys
from typing import NamedTuple

from sskafka.cli.usage import UsageError
from sskafka.client.errors import (
    BrokerUnavailableError,
    ClientError,
    NoOffsetForPartitionError,
    UnknownTopicError,
    UnsupportedApiError,
)
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.properties import PropertiesError
from sskafka.model.setting import SettingError
from sskafka.records.batch import CorruptBatchError
from sskafka.storage.errors import StorageError


class CommandError(Exception):
    """A command cannot do what it was asked for; `hint` names the next command or option to try."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Explanation(NamedTuple):
    cause: str
    hint: str = ""


_HINT_BY_CODE = {
    ErrorCode.TOPIC_ALREADY_EXISTS: "`sskafka topic describe NAME` shows it; --if-not-exists leaves it alone",
    ErrorCode.INVALID_REPLICATION_FACTOR: "use -r with at most the number of brokers that are up",
    ErrorCode.MESSAGE_TOO_LARGE: "`sskafka topic alter NAME -c max.message.bytes=N` allows larger batches",
    ErrorCode.OFFSET_OUT_OF_RANGE: "`sskafka topic describe NAME -p` shows the offsets that are there",
}


def report(error: Exception) -> bool:
    """Prints an error that has a good explanation; false for one that only a traceback explains."""
    explanation = explain(error)
    if explanation is None:
        return False
    print(f"error: {explanation.cause}", file=sys.stderr)
    if explanation.hint:
        print(f"  try: {explanation.hint}", file=sys.stderr)
    return True


def explain(error: Exception) -> Explanation | None:
    match error:
        case CommandError():
            return Explanation(str(error), error.hint)
        case UsageError():
            return Explanation(str(error), "--help")
        case BrokerUnavailableError():
            return Explanation(str(error), "`sskafka start` starts a broker; -b HOST:PORT names another one")
        case UnknownTopicError():
            return Explanation(
                str(error), "`sskafka topic list` shows the topics, `sskafka topic create NAME` makes one"
            )
        case NoOffsetForPartitionError():
            return Explanation(str(error), "-o start or -o end; `sskafka topic describe NAME -p` shows what is there")
        case UnsupportedApiError():
            return Explanation(str(error), "a newer broker, or another command")
        case KafkaError():
            return Explanation(f"{error} ({error.code.name})", _HINT_BY_CODE.get(error.code, ""))
        case SettingError() | PropertiesError():
            return Explanation(str(error), "docs/configuration.md lists every setting")
        case ClientError() | StorageError() | CorruptBatchError():
            return Explanation(str(error))
        case OSError():
            return Explanation(_os_error_text(error))
        case _ if type(error).__module__.startswith(
            "sskafka.pipelines."
        ):  # importing them here would cost every command
            return Explanation(str(error), getattr(error, "hint", ""))
        case _:
            return None


def _os_error_text(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    return f"{error.filename}: {reason}" if error.filename else reason
