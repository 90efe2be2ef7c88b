"""Writers and readers for a cluster whose brokers are being killed: an idempotent producer with acks=all on a thread.

Every partition gets a few hundred numbers a second, so that a pause shows in the times of the acknowledgements.
"""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from history import PartitionHistory, Read, check_all, describe
from waiting import wait_until

OUTSTANDING_MAX = 400
"""Numbers of one partition on their way: a stalled partition must not keep the others from being written."""
TURN_S = 0.004
FLUSH_TIMEOUT_S = 60
READ_TIMEOUT_S = 30
READER_GROUP = "none"
PADDING = b"." * 100


class Load:
    def __init__(
        self,
        bootstrap: str,
        topic: str,
        partitions: int,
        *,
        client_config: Mapping[str, object] | None = None,
        **config: object,
    ) -> None:
        """`client_config`: properties of the producer and of the consumer that reads everything back."""
        settings = {key.replace("_", "."): value for key, value in config.items()}
        self.client_config = dict(client_config or {})
        self.bootstrap = bootstrap
        self.topic = topic
        self.histories = {partition: PartitionHistory() for partition in range(partitions)}
        self.failures: list[tuple[int, int, KafkaError]] = []
        """Partition and number of what the producer gave up."""
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 2,
                "message.timeout.ms": 120_000,
                **self.client_config,
                **settings,
            }
        )
        self._ended = threading.Event()

    @contextmanager
    def running(self) -> Iterator["Load"]:
        """Writes while the body runs; afterwards everything that was sent has been acknowledged."""
        self._ended.clear()
        thread = threading.Thread(target=self._run, name="load")
        thread.start()
        try:
            self.wait_for_progress()
            yield self
        finally:
            self._ended.set()
            thread.join()
        assert self._producer.flush(FLUSH_TIMEOUT_S) == 0, "some numbers were neither acknowledged nor refused"

    def wait_for_progress(self, count: int = 50, timeout_s: float = 60) -> None:
        """Until each partition has acknowledged `count` more."""
        goals = {partition: len(history.offsets) + count for partition, history in self.histories.items()}
        wait_until(
            lambda: all(len(self.histories[partition].offsets) >= goal for partition, goal in goals.items()),
            "every partition makes progress",
            timeout_s,
        )

    @property
    def acknowledged(self) -> int:
        return sum(len(history.offsets) for history in self.histories.values())

    def longest_gap(self, begin: float, end: float) -> float:
        """Seconds that the writers of the partition hit worst had to wait."""
        return max(history.longest_gap(begin, end) for history in self.histories.values())

    def verify(self, bootstrap: str | None = None) -> None:
        """Reads everything back and fails unless each promise was kept."""
        failures = [f"{self.topic}-{partition}: {number} {error}" for partition, number, error in self.failures]
        assert not failures, "the producer gave up:\n" + "\n".join(failures[:20])
        for partition, history in self.histories.items():
            unanswered = sorted(set(range(history.sent)) - history.offsets.keys())
            assert not unanswered, f"{self.topic}-{partition}: neither acknowledged nor refused: {unanswered}"
        ends = {partition: history.end_offset for partition, history in self.histories.items()}
        logs = read_all(bootstrap or self.bootstrap, self.topic, ends, self.client_config)
        broken = check_all(self.histories, logs)
        assert not broken, "\n".join(
            describe(f"{self.topic}-{partition}", violations, self.histories[partition], logs[partition])
            for partition, violations in broken.items()
        )

    def _run(self) -> None:
        while not self._ended.is_set():
            for partition, history in self.histories.items():
                if history.sent - len(history.offsets) < OUTSTANDING_MAX:
                    report = partial(self._report, partition, history.sent)
                    value = b"%d %s" % (history.sent, PADDING)
                    self._producer.produce(self.topic, value, b"%d" % partition, partition, report)
                    history.sent += 1
            self._producer.poll(TURN_S)

    def _report(self, partition: int, number: int, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append((partition, number, error))
        else:
            self.histories[partition].acknowledge(number, message.offset(), time.monotonic())


def read_all(
    bootstrap: str, topic: str, ends: Mapping[int, int], client_config: Mapping[str, object] | None = None
) -> dict[int, list[Read]]:
    """Everything that consumers may see, of each partition at least up to its offset in `ends`.

    A new leader may begin with an older high watermark than the one that acknowledged: a follower learns of it with
    its next fetch. Consumers then see the end of the partition too early for a moment, in Apache Kafka too."""
    settings = {"group.id": READER_GROUP, "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings, **(client_config or {})})
    logs: dict[int, list[Read]] = {partition: [] for partition in ends}
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in logs])
        at_end: set[int] = set()
        deadline = time.monotonic() + READ_TIMEOUT_S
        while at_end != logs.keys():
            assert time.monotonic() < deadline, f"{topic}: read to their end are {sorted(at_end)}; {lasts(logs)}"
            for message in consumer.consume(1000, 1.0):
                if message.error() is None:
                    number = int(message.value().split()[0])
                    logs[message.partition()].append(Read(message.offset(), number, message.leader_epoch()))
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    if message.offset() >= ends[message.partition()]:
                        at_end.add(message.partition())
                elif not message.error().retriable():
                    raise KafkaException(message.error())
    finally:
        consumer.close()
    return logs


def lasts(logs: Mapping[int, list[Read]]) -> str:
    return "; ".join(f"partition {partition} up to {log[-1] if log else 'nothing'}" for partition, log in logs.items())
