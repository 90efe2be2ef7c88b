"""Mistakes that the replacement of a part of a compacted log could make: the simulation must find each of them."""

from typing import Any

from part_run import PartRun

from sskafka.replication.part_replacement import PartReplacement
from sskafka.replication.partition import Partition
from sskafka.storage.log import Log
from sskafka.storage.part_writer import PartWriter
from sskafka.storage.replaced_part import SegmentFacts
from sskafka.storage.segment import Segment


class EndsWhereRecordsWereRemoved(PartRun):
    class part_replacement(PartReplacement):  # noqa: N801
        async def _facts(self, log: Log) -> tuple[list[Segment], list[SegmentFacts]]:
            segments, facts = await super()._facts(log)
            return segments, [one._replace(is_complete=True) for one in facts]


class ForgetsDamageBehindThePart(PartRun):
    """Only the first damaged range is looked at."""

    class part_replacement(PartReplacement):  # noqa: N801
        async def _replace(self, partition: Partition, log: Log, broker_id: int) -> None:
            found = list(log.damaged or ())
            for damage in found[1:]:
                log.forget_damage(damage)
            await super()._replace(partition, log, broker_id)


class LosesTheTransactionIndex(PartRun):
    class part_replacement(PartReplacement):  # noqa: N801
        def _writer(self, log: Log, facts: list[SegmentFacts], ends: list[int]) -> PartWriter:
            writer = super()._writer(log, facts, ends)
            take = writer.check.take

            def without_aborts(header: Any, batch: Any) -> Any:
                taken = take(header, batch)
                return taken and taken._replace(aborted=None)

            writer.check.take = without_aborts  # type: ignore[method-assign]
            return writer


class IsDirtyInMemoryOnly(PartRun):
    """A start believes that keys of the part are there only once. Tombstones go, and older values stay."""

    def _checkpoint(self) -> None: ...


class StaysClean(IsDirtyInMemoryOnly):
    class part_replacement(PartReplacement):  # noqa: N801
        async def _replace(self, partition: Partition, log: Log, broker_id: int) -> None:
            first_dirty_offset = log.first_dirty_offset
            await super()._replace(partition, log, broker_id)
            log.first_dirty_offset = first_dirty_offset


BUGS = [
    EndsWhereRecordsWereRemoved,
    IsDirtyInMemoryOnly,
    StaysClean,
    ForgetsDamageBehindThePart,
    LosesTheTransactionIndex,
]
