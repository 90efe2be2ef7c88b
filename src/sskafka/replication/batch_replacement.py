"""Replace damaged batches of a log by the same batches of another replica.

    follower   fetches them from the leader
    leader     fetches them from an in-sync follower, as a consumer near that follower would (KIP-392)

Replicas hold the same batches, byte for byte, unless the log is compacted. So the replacement has exactly the size of
the damaged range, and is written in its place in the segment file. Nothing is truncated: the replica stays in sync, and
a leader goes on leading. Only batches below the high watermark are replaced. Where replicas were compacted differently,
more than the damaged range is replaced (part_replacement.py).
"""

import asyncio
from collections.abc import Iterator
from concurrent.futures import Executor

from sskafka.model.buffers import Buffer
from sskafka.records.batch import (
    HEADER_BYTES,
    BatchHeader,
    CorruptBatchError,
    crc_matches,
    iter_headers,
    read_header,
)
from sskafka.replication.cluster_links import ClusterLinks
from sskafka.replication.part_replacement import PartReplacement
from sskafka.replication.partition import Partition
from sskafka.replication.replica_reader import NotReplaceableError, reading_from
from sskafka.storage.damage import Damage
from sskafka.storage.disk import File
from sskafka.storage.log import Log
from sskafka.storage.segment import Segment

RANGE_BYTES_MAX = 64 * 1024 * 1024
"""The largest damaged range that is fetched: it is held in memory."""


class DifferentBatchesError(NotReplaceableError):
    """The batches of the other replica may not be those that this log had: they were compacted differently."""


def sources_of(partition: Partition) -> list[int]:
    """Return the brokers that have the committed batches of the partition, without this one."""
    leader = partition.leader
    if leader is not None:
        return [broker_id for broker_id in leader.isr.committed if broker_id != leader.broker_id]
    leader_id = partition.leadership.leader_id
    return [leader_id] if leader_id >= 0 else []


class BatchReplacement:
    def __init__(self, links: ClusterLinks, executor: Executor, parts: PartReplacement) -> None:
        self._links = links
        self._executor = executor
        self._parts = parts

    async def replace(self, partition: Partition, damage: Damage) -> int:
        """Return the id of the broker whose batches have replaced the damaged range, which is synced then."""
        if damage.end_offset > partition.high_watermark:
            raise NotReplaceableError("not all of it is committed yet")
        problems = []
        for broker_id in sources_of(partition):
            try:
                await self._replace_from(broker_id, partition, damage)
            except (NotReplaceableError, CorruptBatchError) as error:
                problems.append(f"broker {broker_id}: {error}")
            else:
                return broker_id
        raise NotReplaceableError("; ".join(problems) or "no other replica is in sync")

    async def _replace_from(self, broker_id: int, partition: Partition, damage: Damage) -> None:
        log = partition.log
        try:
            if damage.size_bytes > RANGE_BYTES_MAX:
                raise DifferentBatchesError(f"{damage.size_bytes} bytes are too many")
            batches = await self._fetch(partition, damage, broker_id)
            _check(batches, damage, partition)
            segment = _segment_of(log, damage)
            if log.config.is_compacted or log.has_gaps:
                check_same(batches, segment.file.read_at(damage.size_bytes, damage.position), damage)
            await self._write(log, segment.file, damage, batches)
            log.forget_damage(damage)
        except DifferentBatchesError as error:
            if not log.config.is_compacted:
                raise
            try:
                await self._parts.replace(partition, broker_id)
            except NotReplaceableError as part_error:
                raise NotReplaceableError(f"{error}; {part_error}") from part_error
        except OSError as error:
            raise NotReplaceableError(str(log.log_directory.read_failed(error))) from error

    async def _write(self, log: Log, file: File, damage: Damage, batches: bytes) -> None:
        """Write on the event loop, so that the log is not truncated at the same time; sync in a thread."""
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
        found = bytearray()
        offset = damage.offset
        with reading_from(self._links, broker_id, partition) as reader:
            while offset < damage.end_offset and len(found) < damage.size_bytes:
                records = await reader.read(offset)
                before = offset
                for position, next_offset, size_bytes in _within(records, damage):
                    found += records[position : position + size_bytes]
                    offset = next_offset
                if offset == before:
                    break
        return bytes(found)


def _segment_of(log: Log, damage: Damage) -> Segment:
    if not log.is_in_service:  # a new log may have its files at the same paths
        raise NotReplaceableError("the log was closed in the meantime")
    segment = log.segments.containing(damage.offset)
    if segment.base_offset != damage.segment_base_offset or not log.is_damaged_at(damage):
        raise NotReplaceableError("the segment was truncated or replaced in the meantime")
    return segment


def _within(records: Buffer, damage: Damage) -> Iterator[tuple[int, int, int]]:
    """Yield position, next offset and size of the batches that lie in the range."""
    for position, header in iter_headers(records):
        if header.base_offset >= damage.offset and header.next_offset <= damage.end_offset:
            yield position, header.next_offset, header.size_bytes


def _check(batches: bytes, damage: Damage, partition: Partition) -> None:
    """Raise CorruptBatchError or NotReplaceableError unless the batches are whole and fill the damaged range."""
    if len(batches) != damage.size_bytes:
        raise DifferentBatchesError(f"it has {len(batches)} bytes for these offsets instead of {damage.size_bytes}")
    for position, header in iter_headers(batches):
        if not crc_matches(batches, header, position):
            raise CorruptBatchError(f"its batch at offset {header.base_offset} is damaged, too")
        if header.leader_epoch != partition.epoch_of(header.base_offset):
            raise NotReplaceableError(f"its batch at offset {header.base_offset} is of another leader epoch")


def check_same(batches: bytes, damaged: Buffer, damage: Damage) -> None:
    """Raise DifferentBatchesError unless the batches are those that a log with gaps had in the damaged range.

    They are if no record was ever removed from them, because then they have their original size, or if the header of
    the only damaged batch still has the same checksum."""
    headers = [header for _, header in iter_headers(batches)]
    if _are_complete(headers, damage) or (len(headers) == 1 and _has_checksum_of(headers[0], damaged)):
        return
    raise DifferentBatchesError("it was compacted, perhaps in another way")


def _are_complete(headers: list[BatchHeader], damage: Damage) -> bool:
    next_offset = damage.offset
    for header in headers:
        if header.base_offset != next_offset or header.record_count != header.last_offset_delta + 1:
            return False
        next_offset = header.next_offset
    return next_offset == damage.end_offset


def _has_checksum_of(header: BatchHeader, damaged: Buffer) -> bool:
    return len(damaged) >= HEADER_BYTES and read_header(damaged).crc == header.crc
