"""Replace damaged batches of a log by the same batches of another replica, in their place in the segment file.

    follower   fetches them from the leader
    leader     fetches them from an in-sync follower, as a consumer near that follower would (KIP-392)

Replicas hold the same batches, byte for byte, so the replacement has exactly the size of the damaged range. Nothing is
truncated: the replica stays in sync, and a leader goes on leading. Only batches below the high watermark are replaced.
In a compacted log the replicas may have been compacted differently; a range whose size differs is not replaced.
"""

import asyncio
from collections.abc import Iterator
from concurrent.futures import Executor
from functools import partial

from sskafka.model.buffers import Buffer
from sskafka.model.errors import ErrorCode
from sskafka.records.batch import CorruptBatchError, crc_matches, iter_headers, whole_batches
from sskafka.replication.cluster_links import ClusterLinks
from sskafka.replication.partition import Partition
from sskafka.storage.damage import Damage
from sskafka.storage.log import Log
from sskafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

RANGE_BYTES_MAX = 64 * 1024 * 1024
"""The largest damaged range that is fetched: it is held in memory."""
FETCH_BYTES = 1024 * 1024
TIMEOUT_S = 30


class NotReplaceableError(Exception):
    """No other replica could provide the batches."""


def sources_of(partition: Partition) -> list[int]:
    """Return the brokers that have the committed batches of the partition, without this one."""
    leader = partition.leader
    if leader is not None:
        return [broker_id for broker_id in leader.isr.committed if broker_id != leader.broker_id]
    leader_id = partition.leadership.leader_id
    return [leader_id] if leader_id >= 0 else []


class BatchReplacement:
    def __init__(self, links: ClusterLinks, executor: Executor) -> None:
        self._links = links
        self._executor = executor

    async def replace(self, partition: Partition, damage: Damage) -> int:
        """Return the id of the broker whose batches have replaced the damaged range, which is synced then."""
        if damage.end_offset > partition.high_watermark:
            raise NotReplaceableError("not all of it is committed yet")
        if damage.size_bytes > RANGE_BYTES_MAX:
            raise NotReplaceableError(f"{damage.size_bytes} bytes are too many")
        problems = []
        for broker_id in sources_of(partition):
            try:
                batches = await self._fetch(partition, damage, broker_id)
                _check(batches, damage, partition)
                await self._write(partition.log, damage, batches)
            except (NotReplaceableError, CorruptBatchError) as error:
                problems.append(f"broker {broker_id}: {error}")
            else:
                return broker_id
        raise NotReplaceableError("; ".join(problems) or "no other replica is in sync")

    async def _write(self, log: Log, damage: Damage, batches: bytes) -> None:
        """Write on the event loop, so that the log is not truncated at the same time; sync in a thread."""
        segment = log.segments.containing(damage.offset)
        if segment.base_offset != damage.segment_base_offset or not log.is_damaged_at(damage):
            raise NotReplaceableError("the segment was truncated or replaced in the meantime")
        file = segment.file
        try:
            file.write_at(batches, damage.position)
        except OSError as error:
            raise NotReplaceableError(str(log.log_directory.write_failed(error))) from error
        try:
            await asyncio.get_running_loop().run_in_executor(self._executor, file.sync)
        except OSError as error:
            raise NotReplaceableError(str(log.log_directory.sync_failed(error))) from error

    async def _fetch(self, partition: Partition, damage: Damage, broker_id: int) -> bytes:
        """Return the batches of the broker in the offsets of the range."""
        link = self._links.link_to(broker_id)
        found = bytearray()
        offset = damage.offset
        try:
            while offset < damage.end_offset and len(found) < damage.size_bytes:
                answered: asyncio.Future[FetchResponse | Exception] = asyncio.get_running_loop().create_future()
                link.ask(_request(partition, offset), FetchResponse, partial(_complete, answered))
                records = whole_batches(memoryview(_records(await asyncio.wait_for(answered, TIMEOUT_S))))
                before = offset
                for position, next_offset, size_bytes in _within(records, damage):
                    found += records[position : position + size_bytes]
                    offset = next_offset
                if offset == before:
                    break
        except TimeoutError as error:
            raise NotReplaceableError("it did not answer in time") from error
        finally:
            link.close()
        return bytes(found)


def _complete(answered: "asyncio.Future[FetchResponse | Exception]", answer: FetchResponse | Exception) -> None:
    if not answered.done():
        answered.set_result(answer)


def _request(partition: Partition, offset: int) -> FetchRequest:
    """Send a Fetch as a consumer does: the offset of a follower would claim what this broker has."""
    wanted = FetchPartition(
        partition=partition.topic_partition.partition,
        current_leader_epoch=partition.leadership.leader_epoch,
        fetch_offset=offset,
        partition_max_bytes=FETCH_BYTES,
    )
    return FetchRequest(max_bytes=FETCH_BYTES, topics=[FetchTopic(topic_id=partition.topic_id, partitions=[wanted])])


def _records(answer: FetchResponse | Exception) -> Buffer:
    if isinstance(answer, Exception):
        raise NotReplaceableError(str(answer)) from answer
    for topic in answer.responses:
        for data in topic.partitions:
            if data.error_code != ErrorCode.NONE:
                raise NotReplaceableError(ErrorCode(data.error_code).name)
            return data.records or b""
    raise NotReplaceableError(f"it answered {ErrorCode(answer.error_code).name}")


def _within(records: Buffer, damage: Damage) -> Iterator[tuple[int, int, int]]:
    """Yield position, next offset and size of the batches that lie in the range."""
    for position, header in iter_headers(records):
        if header.base_offset >= damage.offset and header.next_offset <= damage.end_offset:
            yield position, header.next_offset, header.size_bytes


def _check(batches: bytes, damage: Damage, partition: Partition) -> None:
    """Raise CorruptBatchError or NotReplaceableError unless the batches are whole and fill the damaged range."""
    if len(batches) != damage.size_bytes:
        raise NotReplaceableError(f"it has {len(batches)} bytes for these offsets instead of {damage.size_bytes}")
    for position, header in iter_headers(batches):
        if not crc_matches(batches, header, position):
            raise CorruptBatchError(f"its batch at offset {header.base_offset} is damaged, too")
        if header.leader_epoch != partition.epoch_of(header.base_offset):
            raise NotReplaceableError(f"its batch at offset {header.base_offset} is of another leader epoch")
