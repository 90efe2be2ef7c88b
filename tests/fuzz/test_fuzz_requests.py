"""Random and damaged requests of every API version against one broker: it logs no traceback, does not end, stays small.

Inputs come in rounds. Each round has a seed, which is printed: FUZZ_SEED=<seed> starts with that round.
"""

import asyncio
import os
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from random import Random, SystemRandom

from broker_process import BrokerProcess
from fuzz_client import FuzzClient
from message_generator import TOPICS, MessageGenerator
from mutations import mutated
from scene import MEGABYTE, rss_bytes
from wire_connection import Connection

from sskafka.wire.header import decode_request_header

ROUND_INPUTS = 5000
CORPUS = 64
MUTATED_SHARE = 0.5
HEADER_SHARE = 0.05
RSS_MAX = 700 * MEGABYTE
SETTINGS = {"log.segment.bytes": 1 << 20, "group.min.session.timeout.ms": 1, "transaction.max.timeout.ms": 10_000}


def inputs(seed: int, topic_ids: tuple[bytes, ...]) -> Iterator[bytes]:
    """Yield the frames of a round; most are damaged."""
    random = Random(seed)
    generator = MessageGenerator(random, topic_ids)
    corpus: deque[bytes] = deque(maxlen=CORPUS)
    for _ in range(ROUND_INPUTS):
        _, frame = generator.frame()
        corpus.append(frame)
        if random.random() < MUTATED_SHARE:
            first = 0 if random.random() < HEADER_SHARE else decode_request_header(frame).body_position
            frame = mutated(random, frame, random.choice(corpus), first)
        yield frame


def test_requests(tmp_path: Path) -> None:
    count, seconds = int(os.environ.get("FUZZ_INPUTS") or 10**9), float(os.environ.get("FUZZ_SECONDS") or 10**9)
    seed = int(os.environ.get("FUZZ_SEED") or SystemRandom().getrandbits(32))
    broker = BrokerProcess(tmp_path / "broker", SETTINGS).start()
    sent = answered = closed = 0
    began_s = time.monotonic()
    try:
        topic_ids = create_topics(broker)
        while sent < count and time.monotonic() - began_s < seconds:
            client = FuzzClient(*broker.address, inputs(seed, topic_ids))
            asyncio.run(client.run())
            sent, answered, closed = sent + client.sent, answered + client.answered, closed + client.closed
            rss = rss_bytes(broker.pid)
            sys.stderr.write(
                f"seed {seed}: {sent} requests, {answered} answered, {closed} connections closed, {rss >> 20} MB\n"
            )
            check(broker, seed, rss)
            seed += 1
        assert broker.stop() == 0, broker.log[-5000:]
    finally:
        broker.close()


def check(broker: BrokerProcess, seed: int, rss: int) -> None:
    log = broker.log
    at = log.find("Traceback")
    assert at < 0, f"seed {seed}: {log[max(0, at - 500) : at + 5000]}"
    assert broker.is_running, f"seed {seed}: {log[-5000:]}"
    assert rss <= RSS_MAX, f"seed {seed}: {rss >> 20} MB"
    with Connection(broker.bootstrap) as connection:
        connection.topic_metadata(TOPICS[0])


def create_topics(broker: BrokerProcess) -> tuple[bytes, ...]:
    with Connection(broker.bootstrap) as connection:
        first = [connection.create_topic(name, partitions=2) for name in TOPICS[:2]]
        return (*first, connection.create_topic(TOPICS[2], cleanup_policy="compact"))
