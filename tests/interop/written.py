"""A log directory as a broker leaves it, with what a consumer read from it while that broker served it.

codecs     batches of every codec, keys, headers, null values; snappy by librdkafka and by the Java client
segments   several segments of 1 MiB with an index entry every kilobyte, written by an idempotent producer
stamped    timestamps by the broker
trimmed    the first half deleted, so that the log starts in the middle
"""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.brokers import Broker, BrokerKind
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from programs import JavaTools, Kcat, Message

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ADMIN_SECONDS_MAX = 30.0
SEGMENT_SETTINGS = {"segment.bytes": str(1 << 20), "index.interval.bytes": "1024"}
TOPICS = {
    "codecs": NewTopic("codecs", 2, 1),
    "segments": NewTopic("segments", 1, 1, config=SEGMENT_SETTINGS),
    "stamped": NewTopic("stamped", 1, 1, config={"message.timestamp.type": "LogAppendTime"}),
    "trimmed": NewTopic("trimmed", 1, 1),
}
PARTITIONS = (("codecs", 0), ("codecs", 1), ("segments", 0), ("stamped", 0), ("trimmed", 0))


@dataclass(slots=True)
class Written:
    """`clean` is the directory after a clean stop, `unclean` a copy made while the broker ran: what a crash leaves."""

    clean: Path
    unclean: Path
    records: dict[tuple[str, int], list[Message]] = field(default_factory=dict)
    committed: list[Message] | None = None


def write_logs(kind: BrokerKind, directory: Path, kcat_program: str, java: JavaTools, *, transactions: bool) -> Written:
    written = Written(directory / "data", directory / "unclean")
    with kind.running(directory, {"transaction.state.log.num.partitions": "1"}) as broker:
        kcat = Kcat(kcat_program, broker.bootstrap)
        create_topics(broker)
        write_codecs(broker, java)
        write_segments(broker)
        kcat.produce("stamped", [f"stamped {number}" for number in range(100)])
        write_trimmed(broker, kcat)
        if transactions:
            write_transactions(broker)
            written.committed = read_committed(kcat)
        written.records = read_all(kcat)
        shutil.copytree(written.clean, written.unclean, ignore=shutil.ignore_patterns(".lock"))
    return written


def create_topics(broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for created in admin.create_topics(list(TOPICS.values())).values():
        created.result(ADMIN_SECONDS_MAX)


def write_codecs(broker: Broker, java: JavaTools) -> None:
    for codec in CODECS:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "compression.type": codec, "linger.ms": 50})
        for number in range(200):
            value = None if number % 10 == 9 else f"{codec} {number} " + "z" * (number % 50)
            headers: list[tuple[str, str | bytes | None]] = [("codec", codec), ("number", str(number)), ("codec", None)]
            producer.produce("codecs", value, f"key {number % 7}", number % 2, headers=headers[: number % 4])
        assert producer.flush(ADMIN_SECONDS_MAX) == 0
    framed = "".join(f"xerial {number}\n" for number in range(50))
    options = ("--topic", "codecs", "--compression-codec", "snappy")
    java.run("org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", broker.bootstrap, *options, stdin=framed)


def write_segments(broker: Broker) -> None:
    settings = {"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "batch.size": 20_000, "linger.ms": 5}
    producer = Producer(settings)
    for number in range(8000):
        producer.produce("segments", f"{number:06} " + "s" * 400, partition=0)
        producer.poll(0)
    assert producer.flush(ADMIN_SECONDS_MAX) == 0


def write_trimmed(broker: Broker, kcat: Kcat) -> None:
    kcat.produce("trimmed", [str(number) for number in range(20)], "-X", "batch.num.messages=5")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for deleted in admin.delete_records([TopicPartition("trimmed", 0, 10)]).values():
        deleted.result(ADMIN_SECONDS_MAX)


def write_transactions(broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "interop"})
    producer.init_transactions(ADMIN_SECONDS_MAX)
    for number in range(6):
        producer.begin_transaction()
        for place in range(5):
            producer.produce("transactions", f"transaction {number} record {place}", partition=0)
        producer.flush(ADMIN_SECONDS_MAX)
        finish = producer.commit_transaction if number % 2 == 0 else producer.abort_transaction
        finish(ADMIN_SECONDS_MAX)


def read_committed(kcat: Kcat) -> list[Message]:
    return kcat.consume("transactions", "-X", "isolation.level=read_committed")


def read_all(kcat: Kcat) -> dict[tuple[str, int], list[Message]]:
    return {(topic, partition): kcat.consume(topic, partition=partition) for topic, partition in PARTITIONS}
