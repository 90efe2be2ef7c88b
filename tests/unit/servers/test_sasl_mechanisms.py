"""PLAIN and SCRAM at a listener: long messages of clients that have not logged in cost nothing."""

from collections.abc import Callable

import pytest

from sskafka.model.security.errors import SaslError
from sskafka.model.security.sasl_messages import plain_message
from sskafka.model.security.scram import SCRAM_MECHANISMS
from sskafka.servers.kafka.security.mechanisms import (
    MESSAGE_BYTES_MAX,
    PlainMechanism,
    SaslExchange,
    ScramServerMechanism,
)

SCRAM = SCRAM_MECHANISMS["SCRAM-SHA-256"]
LONG_PASSWORD = "p" * (MESSAGE_BYTES_MAX - len(plain_message("user", "")))


def plain() -> SaslExchange:
    return PlainMechanism(lambda: {"user": LONG_PASSWORD}, 0).begin()


def scram() -> SaslExchange:
    return ScramServerMechanism(SCRAM, lambda user, is_token: None, 0).begin()


def scram_first(size_bytes: int) -> bytes:
    return b"n,,n=user,r=".ljust(size_bytes, b"x")


def test_messages_up_to_the_limit_are_evaluated() -> None:
    assert plain().evaluate(plain_message("user", LONG_PASSWORD)).principal == "User:user"
    assert scram().evaluate(scram_first(MESSAGE_BYTES_MAX)).answer


@pytest.mark.parametrize("begin", [plain, scram])
@pytest.mark.parametrize("size_bytes", [MESSAGE_BYTES_MAX + 1, 500_000])
def test_longer_first_messages_are_refused(begin: Callable[[], SaslExchange], size_bytes: int) -> None:
    message = scram_first(size_bytes) if begin is scram else plain_message("user", "p" * size_bytes)
    with pytest.raises(SaslError, match="more than 16384"):
        begin().evaluate(message)


def test_longer_last_messages_are_refused() -> None:
    exchange = scram()
    exchange.evaluate(scram_first(100))
    with pytest.raises(SaslError, match="the message has 500000 bytes, more than 16384"):
        exchange.evaluate(b"c=biws,r=x,p=".ljust(500_000, b"A"))
