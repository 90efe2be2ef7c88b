"""Kafka clients that give the console something to show."""

import asyncio
from typing import Any

import confluent_kafka
from console_cluster import ConsoleCluster

from sskafka.client.admin import Admin, NewTopic
from sskafka.client.cluster import Cluster

TIMEOUT_S = 60


def create_topic(cluster: ConsoleCluster, topic: str, partitions: int = 1) -> None:
    async def work() -> None:
        async with Cluster(cluster.bootstrap) as client:
            (outcome,) = (await Admin(client).create_topics([NewTopic(topic, partitions, 3)])).values()
            assert not isinstance(outcome, Exception), outcome

    asyncio.run(work())


def new_producer(cluster: ConsoleCluster, **config: Any) -> confluent_kafka.Producer:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    return confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 0, **settings})


def new_consumer(cluster: ConsoleCluster, **config: Any) -> confluent_kafka.Consumer:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    return confluent_kafka.Consumer({"bootstrap.servers": cluster.bootstrap, "fetch.wait.max.ms": 100, **settings})
