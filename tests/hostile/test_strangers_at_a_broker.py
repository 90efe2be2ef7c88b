"""Strangers at the secured listeners of a real broker: nothing is served, memory and log stay small, users log in."""

import asyncio
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from scene import MEGABYTE, rss_bytes
from secure_broker import SecureBroker
from strangers import Strangers

WARM_UP = 300
SLICE = 1_500
EVERYTHING = 100_000
RSS_GROWTH_MAX = 24 * MEGABYTE
LOG_BYTES_PER_MINUTE_MAX = 40_000


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[SecureBroker]:
    broker = SecureBroker(tmp_path)
    try:
        yield broker.start()  # type: ignore[misc]
    finally:
        sys.stderr.write(broker.log[-5000:])
        broker.close()


def attack(secure: SecureBroker, count: int, seed: int) -> None:
    admin = AdminClient({"bootstrap.servers": secure.at("PLAINTEXT")})
    admin.create_topics([NewTopic("hidden-topic", 1, 1)])["hidden-topic"].result(20)
    strangers = Strangers(secure.at("SASL_PLAINTEXT"), secure.at("SASL_SSL"), secure.certificates.ca, seed)
    asyncio.run(strangers.attack(WARM_UP))
    began_s, rss, logged = time.monotonic(), rss_bytes(secure.pid), len(secure.log)
    asyncio.run(strangers.attack(count - WARM_UP))
    minutes = (time.monotonic() - began_s) / 60
    grown, said = rss_bytes(secure.pid) - rss, len(secure.log) - logged
    sys.stderr.write(
        f"seed {seed}: {strangers.connections} connections in {minutes:.1f} min, {strangers.bytes_received} bytes "
        f"received, {grown / MEGABYTE:.1f} MB more memory, {said} bytes logged\n"
    )
    assert strangers.connections == count
    assert strangers.bytes_received > 0
    assert grown < RSS_GROWTH_MAX, f"seed {seed}"
    assert said < LOG_BYTES_PER_MINUTE_MAX * (1 + minutes), secure.log[-5000:]
    assert "Traceback" not in secure.log
    user = AdminClient(secure.librdkafka("SASL_SSL", "PLAIN"))
    assert "hidden-topic" in user.list_topics(timeout=20).topics


def test_some_strangers(secure: SecureBroker) -> None:
    attack(secure, SLICE, seed=17)


@pytest.mark.long_attack
def test_100_000_strangers(secure: SecureBroker) -> None:
    attack(secure, EVERYTHING, seed=random.SystemRandom().randrange(2**32))
