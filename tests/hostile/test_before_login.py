"""Strangers at a SASL listener, 100,000 times: nothing is served, memory and log stay as they are."""

import logging
import random

import pytest
from tests.support.sasl_listener import attack


@pytest.mark.long_attack
def test_100_000_connections_of_strangers(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    attack(100_000, seed=random.SystemRandom().randrange(2**32))
    assert len(caplog.records) <= 30
