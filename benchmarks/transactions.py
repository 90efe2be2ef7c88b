"""Transactions per second and their duration, with librdkafka and with SSKafka's client.

    python -m benchmarks.transactions [--seconds 5] [--records 10] [--partitions 3] [--kafka]

One broker on this machine, and with `--kafka` one of Apache Kafka. A producer ends a transaction before it starts the
next; each of several producers has its own transactional id.
"""

import argparse
import asyncio
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.apache_kafka import resolve_kafka_libs
from benchmarks.brokers import apache_kafka_kind, sskafka_kind
from benchmarks.machine import describe
from sskafka.client.cluster import Cluster
from sskafka.client.transactional_producer import TransactionalProducer

TOPIC = "transactions"
TIMEOUT_S = 30.0
VALUE = bytes(100)
PRODUCERS = (1, 8)
SETTINGS = {"transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1"}

Transact = Callable[[], None]


def by_librdkafka(bootstrap: str, name: str, records: int, partitions: int) -> Transact:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, "linger.ms": 0})
    producer.init_transactions(TIMEOUT_S)

    def transact() -> None:
        producer.begin_transaction()
        for number in range(records):
            producer.produce(TOPIC, VALUE, partition=number % partitions)
        producer.commit_transaction(TIMEOUT_S)

    return transact


def run_for(seconds: float, transact: Transact) -> list[float]:
    """Return the duration of each transaction."""
    durations: list[float] = []
    end = time.monotonic() + seconds
    while (began := time.monotonic()) < end:
        transact()
        durations.append(time.monotonic() - began)
    return durations


def with_librdkafka(bootstrap: str, producers: int, options: argparse.Namespace) -> dict[str, float]:
    """Use threads, because librdkafka's calls release the interpreter lock."""
    durations: list[float] = []
    ready = threading.Barrier(producers)

    def work(number: int) -> None:
        transact = by_librdkafka(bootstrap, f"rdkafka-{producers}-{number}", options.records, options.partitions)
        transact()
        ready.wait(TIMEOUT_S)
        durations.extend(run_for(options.seconds, transact))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(producers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return figures(durations, options.seconds)


async def with_wire_client(bootstrap: str, options: argparse.Namespace) -> dict[str, float]:
    """Use the second version of the transaction protocol, in which leaders add partitions."""
    durations: list[float] = []
    async with Cluster(bootstrap) as cluster, TransactionalProducer(cluster, "wire") as producer:
        end = time.monotonic() + options.seconds
        while (began := time.monotonic()) < end:
            async with producer.transaction():
                for number in range(options.records):
                    await producer.send(TOPIC, VALUE, partition=number % options.partitions)
            durations.append(time.monotonic() - began)
    return figures(durations, options.seconds)


def figures(durations: list[float], seconds: float) -> dict[str, float]:
    cuts = quantiles(durations, n=100)
    return {
        "transactions/s": round(len(durations) / seconds, 1),
        "p50 ms": round(cuts[49] * 1000, 2),
        "p99 ms": round(cuts[98] * 1000, 2),
    }


def create_topic(bootstrap: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, partitions, 1)])[TOPIC].result(TIMEOUT_S)


def measure(bootstrap: str, options: argparse.Namespace) -> dict[str, dict[str, float]]:
    create_topic(bootstrap, options.partitions)
    found = {
        f"librdkafka, {count} producer{'s' * (count > 1)}": with_librdkafka(bootstrap, count, options)
        for count in PRODUCERS
    }
    found["wire client, 1 producer"] = asyncio.run(with_wire_client(bootstrap, options))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="duration for each kind of producer")
    parser.add_argument("--records", type=int, default=10, help="records per transaction")
    parser.add_argument("--partitions", type=int, default=3)
    parser.add_argument("--kafka", action="store_true", help="measure Apache Kafka, too")
    options = parser.parse_args()
    kinds = [sskafka_kind()]
    if options.kafka:
        kinds.append(apache_kafka_kind(resolve_kafka_libs()))
    extent = f"{options.records} records over {options.partitions} partitions a transaction, {options.seconds:g} s each"
    print(describe(extent, "transactions"))
    for kind in kinds:
        with tempfile.TemporaryDirectory() as directory, kind.running(Path(directory), SETTINGS) as broker:
            for name, found in measure(broker.bootstrap, options).items():
                print(f"{kind.name}, {name}: " + ", ".join(f"{value:,g} {unit}" for unit, value in found.items()))


if __name__ == "__main__":
    main()
