import logging
from collections.abc import Iterator

import pytest

from sskafka.metadata.config_changes import AlterConfigOp
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.servers.broker_loggers import TRACE, alter_loggers, describe_loggers
from sskafka.wire.messages.incremental_alter_configs import AlterableConfig

NAME = "sskafka.test.broker_loggers"
SET, DELETE, APPEND, SUBTRACT = AlterConfigOp.SET, AlterConfigOp.DELETE, AlterConfigOp.APPEND, AlterConfigOp.SUBTRACT


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger(NAME)
    yield logger
    logger.setLevel(logging.NOTSET)


def level_of(name: str) -> str | None:
    (entry,) = describe_loggers({name})
    return entry.value


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("FATAL", logging.CRITICAL),
        ("ERROR", logging.ERROR),
        ("WARN", logging.WARNING),
        ("INFO", logging.INFO),
        ("DEBUG", logging.DEBUG),
        ("TRACE", TRACE),
    ],
)
def test_levels_have_kafkas_names(logger: logging.Logger, name: str, level: int) -> None:
    alter_loggers([AlterableConfig(NAME, SET, name)], validate_only=False)
    assert (logger.level, level_of(NAME)) == (level, name)
    alter_loggers([AlterableConfig(NAME, DELETE, None)], validate_only=False)
    assert (logger.level, level_of(NAME)) == (logging.NOTSET, level_of("root"))


def test_every_logger_is_listed_with_the_level_that_holds_for_it(logger: logging.Logger) -> None:
    names = [entry.name for entry in describe_loggers()]
    assert names[0] == "root"
    assert {NAME, "sskafka.test"} <= set(names)


def test_nothing_changes_when_the_request_only_validates_or_one_change_is_wrong(logger: logging.Logger) -> None:
    alter_loggers([AlterableConfig(NAME, SET, "DEBUG")], validate_only=True)
    wrong = [AlterableConfig(NAME, SET, "DEBUG"), AlterableConfig("no.such.logger", SET, "DEBUG")]
    with pytest.raises(KafkaError, match=r"Logger no\.such\.logger does not exist!"):
        alter_loggers(wrong, validate_only=False)
    assert logger.level == logging.NOTSET


@pytest.mark.parametrize(
    ("change", "code", "text"),
    [
        (AlterableConfig("root", SET, "LOUD"), ErrorCode.INVALID_CONFIG, "Valid log levels are DEBUG, ERROR, FATAL"),
        (AlterableConfig("root", DELETE, None), ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger"),
        (AlterableConfig("root", APPEND, "INFO"), ErrorCode.INVALID_REQUEST, "APPEND operation is not allowed"),
        (AlterableConfig("root", SUBTRACT, "INFO"), ErrorCode.INVALID_REQUEST, "SUBTRACT operation is not allowed"),
        (AlterableConfig("root", 9, "INFO"), ErrorCode.INVALID_REQUEST, "Unknown operation type 9"),
    ],
)
def test_changes_that_kafka_refuses(change: AlterableConfig, code: ErrorCode, text: str) -> None:
    with pytest.raises(KafkaError, match=text) as caught:
        alter_loggers([change], validate_only=False)
    assert caught.value.code == code
