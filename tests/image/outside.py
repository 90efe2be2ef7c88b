"""Clients outside of the containers."""

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

SECONDS_MAX = 120


def write(bootstrap: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    producer.produce("orders", value)
    assert producer.flush(SECONDS_MAX) == 0


def read(bootstrap: str, count: int) -> list[bytes]:
    options = {"bootstrap.servers": bootstrap, "group.id": "billing", "auto.offset.reset": "earliest"}
    consumer = Consumer({**options, "enable.auto.commit": False})
    consumer.subscribe(["orders"])
    records = [consumer.poll(SECONDS_MAX) for _ in range(count)]
    consumer.close()
    return sorted(record.value() for record in records)


def addresses(bootstrap: str) -> list[str]:
    """Return the addresses that a client at `bootstrap` is told, by broker id."""
    try:
        brokers = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}).list_topics(timeout=5).brokers
    except Exception:  # the broker has not started yet
        return []
    return [f"{brokers[number].host}:{brokers[number].port}" for number in sorted(brokers)]
