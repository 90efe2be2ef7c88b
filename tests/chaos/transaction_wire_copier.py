"""As transaction_copier.py, by the wire client and in the second version of the protocol.

    python transaction_wire_copier.py BOOTSTRAP SOURCE TARGET TRANSACTIONAL_ID

Every copier has its share of the partitions, by the number at the end of its id; the group only keeps its offsets. Once
the id is initialized, whatever the process before it left behind has ended, and the offsets say where to go on.
"""

import asyncio
import os
import sys

from transaction_copier import GROUP, RECORDS_IN_TRANSACTION

from sskafka.client.cluster import Cluster
from sskafka.client.config import ConsumerConfig
from sskafka.client.consumer import ConsumerEngine
from sskafka.client.fetched import ConsumedRecord
from sskafka.client.groups import committed_offsets
from sskafka.client.transactional_producer import TransactionalProducer
from sskafka.model.ids import TopicPartition

COPIERS = 3
TIMEOUT_MS = 10_000


async def main(bootstrap: str, source: str, target: str, transactional_id: str) -> None:
    run, number = os.urandom(4).hex(), 0
    async with (
        Cluster(bootstrap) as cluster,
        TransactionalProducer(cluster, transactional_id, timeout_ms=TIMEOUT_MS) as producer,
    ):
        await producer.begin()
        await producer.abort_transaction()
        async with ConsumerEngine(cluster, ConsumerConfig(isolation_level="read_committed")) as consumer:
            consumer.assign(await positions(cluster, source, int(transactional_id.rpartition("-")[2])))
            while True:
                records = (await consumer.poll(300))[:]
                for first in range(0, len(records), RECORDS_IN_TRANSACTION):
                    part = records[first : first + RECORDS_IN_TRANSACTION]
                    await copy(producer, part, target, f"{run}-{number}")
                    number += 1


async def positions(cluster: Cluster, source: str, share: int) -> dict[TopicPartition, int]:
    topic = await cluster.retrying(lambda: cluster.topic(source), topics=[source])
    committed = await cluster.retrying(lambda: committed_offsets(cluster, GROUP))
    partitions = [TopicPartition(source, index) for index in topic.partitions if index % COPIERS == share]
    return {item: committed[item].offset if item in committed else 0 for item in partitions}


async def copy(producer: TransactionalProducer, records: list[ConsumedRecord], target: str, name: str) -> None:
    headers = [("transaction", name.encode()), ("records", b"%d" % len(records))]
    async with producer.transaction():
        for record in records:
            await producer.send(target, record.value, headers=headers)
        ends = {TopicPartition(record.topic, record.partition): record.offset + 1 for record in records}
        await producer.send_offsets(GROUP, ends)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
