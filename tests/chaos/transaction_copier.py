"""Copies a topic, exactly once: reads with a group, writes and commits offsets in transactions.

    python transaction_copier.py BOOTSTRAP SOURCE TARGET TRANSACTIONAL_ID

Every copy says in its headers which transaction it belongs to and how many records that has. Whatever goes wrong ends
the process: who starts it again has the transaction that it left behind aborted, and goes on from the offsets of the
last one that committed.
"""

import os
import sys

from confluent_kafka import Consumer, Message, Producer

RECORDS_IN_TRANSACTION = 100
TIMEOUT_S = 30.0
GROUP = "copiers"


def main(bootstrap: str, source: str, target: str, transactional_id: str) -> None:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 10_000,
            "linger.ms": 5,
        }
    )
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": GROUP,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "session.timeout.ms": 6_000,
            "heartbeat.interval.ms": 1_000,
            "partition.assignment.strategy": "cooperative-sticky",
        }
    )
    producer.init_transactions(TIMEOUT_S)
    consumer.subscribe([source])
    run = os.urandom(4).hex()
    number = 0
    while True:
        messages = [message for message in consumer.consume(RECORDS_IN_TRANSACTION, 0.3) if not message.error()]
        if messages:
            copy(consumer, producer, messages, target, f"{run}-{number}")
            number += 1


def copy(consumer: Consumer, producer: Producer, messages: list[Message], target: str, name: str) -> None:
    producer.begin_transaction()
    headers = [("transaction", name.encode()), ("records", b"%d" % len(messages))]
    for message in messages:
        producer.produce(target, message.value(), headers=headers)
    positions = consumer.position(consumer.assignment())
    producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), TIMEOUT_S)
    producer.commit_transaction(TIMEOUT_S)


if __name__ == "__main__":
    main(*sys.argv[1:])
