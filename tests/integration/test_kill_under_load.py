"""kill -9 again and again under a real client's idempotent load: nothing is lost, nothing is there twice."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from broker_process import BrokerProcess, StartBroker
from clients import CONFLUENT, confluent_producer
from confluent_kafka import KafkaError, Message, Producer
from waiting import wait_until
from wire_connection import Connection

pytestmark = pytest.mark.long

KILLS = 4
PER_LIFE = 400
"""Records that are acknowledged between two kills, at least."""


class Load:
    """A thread that keeps producing numbers to partition 0, a few thousand a second, and keeps the reports."""

    def __init__(self, producer: Producer, topic: str) -> None:
        self.acknowledged: dict[int, int] = {}
        self.failures: list[KafkaError] = []
        self.sent = 0
        self._producer = producer
        self._topic = topic
        self._ended = threading.Event()

    @contextmanager
    def running(self) -> Iterator["Load"]:
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            thread.join()

    def _run(self) -> None:
        while not self._ended.is_set():
            if len(self._producer) < 2000:
                self._producer.produce(self._topic, b"%d" % self.sent, partition=0, on_delivery=self._report)
                self.sent += 1
            self._producer.poll(0.0005)

    def _report(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(error)
        else:
            self.acknowledged[int(message.value() or b"")] = message.offset() or 0


def kill_and_start(broker: BrokerProcess, load: Load) -> None:
    before = len(load.acknowledged)
    wait_until(lambda: len(load.acknowledged) > before + PER_LIFE, "records are acknowledged", timeout_s=30)
    broker.restart(unclean=True)


def test_idempotent_producer_over_kills(start_broker: StartBroker) -> None:
    broker = start_broker()
    broker.settings["listeners"] = f"PLAINTEXT://{broker.bootstrap}"  # the same port in every life
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("numbers", segment_bytes=1_000_000)
    producer = confluent_producer(
        broker.bootstrap, enable_idempotence=True, batch_num_messages=50, reconnect_backoff_max_ms=100
    )
    began = time.monotonic()
    with Load(producer, "numbers").running() as load:
        for _ in range(KILLS):
            kill_and_start(broker, load)
        wait_until(lambda: len(load.acknowledged) > KILLS * PER_LIFE + 200, "the last life serves", timeout_s=30)
    assert producer.flush(30) == 0
    assert load.failures == []
    assert len(load.acknowledged) == load.sent
    received = CONFLUENT.read(broker.bootstrap, "numbers", 0, load.sent)
    assert [int(message.value or b"") for message in received] == list(range(load.sent))
    assert all(load.acknowledged[number] == number for number in range(load.sent))
    with Connection(broker.bootstrap) as connection:
        assert connection.fetch("numbers", load.sent).high_watermark == load.sent
    assert time.monotonic() - began < 90
