"""Transactions of the Java client, in the second version of the protocol, and Kafka's tool for looking after them."""

import re
from pathlib import Path

from benchmarks.brokers import Broker
from programs import JavaTools

TOPICS = "org.apache.kafka.tools.TopicCommand"
PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
PROGRAM = Path(__file__).parent / "java" / "Transactions.java"


def at(broker: Broker) -> tuple[str, str]:
    return "--bootstrap-server", broker.bootstrap


def create(java: JavaTools, broker: Broker, topic: str) -> None:
    java.run(TOPICS, *at(broker), "--create", "--topic", topic, "--partitions", "2")


def test_commit_abort_fencing_and_offsets(java: JavaTools, broker: Broker, topic: str) -> None:
    create(java, broker, topic)
    assert java.run(str(PROGRAM), broker.bootstrap, topic).splitlines() == [
        "fenced ProducerFencedException",
        "committed [first, first, second, second, third, third]",
        "offset 2",
    ]


def test_many_transactions_and_what_the_tool_says_of_them(java: JavaTools, broker: Broker, topic: str) -> None:
    create(java, broker, topic)
    load = ("--topic", topic, "--num-records", "2000", "--record-size", "50", "--throughput", "-1")
    within = ("--transactional-id", topic, "--transaction-duration-ms", "20")
    java.run(PERFORMANCE, *load, *within, "--producer-props", f"bootstrap.servers={broker.bootstrap}")
    listed = java.run(TRANSACTIONS, *at(broker), "list")
    assert re.search(rf"^{topic}\s+\d+\s+\d+\s+CompleteCommit", listed, re.MULTILINE), listed
    described = java.run(TRANSACTIONS, *at(broker), "describe", "--transactional-id", topic)
    assert "CompleteCommit" in described
    producers = java.run(TRANSACTIONS, *at(broker), "describe-producers", "--topic", topic, "--partition", "0")
    assert re.search(r"\bNone\b", producers), producers  # no transaction is open
    read = ("--topic", topic, "--from-beginning", "--isolation-level", "read_committed", "--max-messages", "2000")
    assert len(java.run(CONSUMER, *at(broker), *read, "--timeout-ms", "30000").splitlines()) == 2000
