"""Read batches of a partition from another replica, as a consumer near that replica would (KIP-392)."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from sskafka.client.broker_link import Link
from sskafka.model.buffers import Buffer
from sskafka.model.errors import ErrorCode
from sskafka.records.batch import whole_batches
from sskafka.replication.cluster_links import ClusterLinks
from sskafka.replication.partition import Partition
from sskafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

FETCH_BYTES = 1024 * 1024
TIMEOUT_S = 30


class NotReplaceableError(Exception):
    """No other replica could provide the batches."""


@contextmanager
def reading_from(links: ClusterLinks, broker_id: int, partition: Partition) -> Iterator["ReplicaReader"]:
    link = links.link_to(broker_id)
    try:
        yield ReplicaReader(link, partition)
    finally:
        link.close()


class ReplicaReader:
    def __init__(self, link: Link, partition: Partition) -> None:
        self._link = link
        self._partition = partition
        self._leader_epoch = partition.leadership.leader_epoch

    async def read(self, offset: int) -> Buffer:
        """Return whole batches from the one with `offset` on, at least one unless the committed records end there."""
        answered: asyncio.Future[FetchResponse | Exception] = asyncio.get_running_loop().create_future()
        self._link.ask(self._request(offset), FetchResponse, partial(_complete, answered))
        try:
            answer = await asyncio.wait_for(answered, TIMEOUT_S)
        except TimeoutError as error:
            raise NotReplaceableError("it did not answer in time") from error
        return whole_batches(memoryview(_records(answer)))

    def _request(self, offset: int) -> FetchRequest:
        """Send a Fetch as a consumer does: the offset of a follower would claim what this broker has."""
        wanted = FetchPartition(
            partition=self._partition.topic_partition.partition,
            current_leader_epoch=self._leader_epoch,
            fetch_offset=offset,
            partition_max_bytes=FETCH_BYTES,
        )
        topic = FetchTopic(topic_id=self._partition.topic_id, partitions=[wanted])
        return FetchRequest(max_bytes=FETCH_BYTES, topics=[topic])


def _complete(answered: "asyncio.Future[FetchResponse | Exception]", answer: FetchResponse | Exception) -> None:
    if not answered.done():
        answered.set_result(answer)


def _records(answer: FetchResponse | Exception) -> Buffer:
    if isinstance(answer, Exception):
        raise NotReplaceableError(str(answer)) from answer
    for topic in answer.responses:
        for data in topic.partitions:
            if data.error_code != ErrorCode.NONE:
                raise NotReplaceableError(ErrorCode(data.error_code).name)
            return data.records or b""
    raise NotReplaceableError(f"it answered {ErrorCode(answer.error_code).name}")
