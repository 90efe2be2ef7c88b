"""The loggers of this process as a config resource. Changes last until the process stops.

Levels have the names of Apache Kafka's logging library. FATAL is Python's CRITICAL, WARN is WARNING; TRACE is a level
below DEBUG, which shows everything.
"""

import logging
from collections.abc import Collection, Iterable

from sskafka.metadata.config_changes import AlterConfigOp
from sskafka.model.config_description import ConfigEntry, ConfigSource
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.setting import Type
from sskafka.wire.messages.incremental_alter_configs import AlterableConfig

ROOT = "root"
TRACE = 5
LEVELS = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": TRACE,
}


def describe_loggers(names: Collection[str] | None = None) -> list[ConfigEntry]:
    """Return the effective level of all loggers, or of the named ones."""
    known = (ROOT, *sorted(logging.root.manager.loggerDict))
    return [_described(name) for name in known if names is None or name in names]


def alter_loggers(changes: Iterable[AlterableConfig], *, validate_only: bool) -> None:
    """Change levels. If one of the changes is invalid, raise KafkaError and change none."""
    changes = list(changes)
    for change in changes:
        _check(change)
    if validate_only:
        return
    for change in changes:
        level = LEVELS[change.value or ""] if change.config_operation == AlterConfigOp.SET else logging.NOTSET
        _logger(change.name).setLevel(level)


def _check(change: AlterableConfig) -> None:
    match change.config_operation:
        case AlterConfigOp.SET:
            _check_exists(change.name)
            if change.value not in LEVELS:
                text = (
                    f"Cannot set the log level of {change.name} to {change.value} as it is not a supported log level. "
                )
                text += f"Valid log levels are {', '.join(sorted(LEVELS))}"
                raise KafkaError(ErrorCode.INVALID_CONFIG, text)
        case AlterConfigOp.DELETE:
            _check_exists(change.name)
            if change.name == ROOT:
                text = "Removing the log level of the root logger is not allowed"
                raise KafkaError(ErrorCode.INVALID_REQUEST, text)
        case AlterConfigOp.APPEND | AlterConfigOp.SUBTRACT:
            name = AlterConfigOp(change.config_operation).name
            text = f"{name} operation is not allowed for the BROKER_LOGGER resource"
            raise KafkaError(ErrorCode.INVALID_REQUEST, text)
        case _:
            text = f"Unknown operation type {change.config_operation} is not allowed for the BROKER_LOGGER resource"
            raise KafkaError(ErrorCode.INVALID_REQUEST, text)


def _check_exists(name: str) -> None:
    if name != ROOT and name not in logging.root.manager.loggerDict:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")


def _logger(name: str) -> logging.Logger:
    return logging.root if name == ROOT else logging.getLogger(name)


def _described(name: str) -> ConfigEntry:
    level = _level_name(_logger(name).getEffectiveLevel())
    return ConfigEntry(name, level, ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG, False, False, Type.UNKNOWN, None, ())


def _level_name(level: int) -> str:
    """Return the highest of Kafka's levels that includes all messages of `level`."""
    return next((name for name, number in LEVELS.items() if number <= level), "TRACE")


logging.addLevelName(TRACE, "TRACE")
