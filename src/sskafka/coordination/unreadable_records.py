"""Records of an internal topic that cannot be read or replayed: skipped and counted, so that the partition still loads.

A damaged batch, or a record that some tool wrote, costs what the record says. Refusing to load would cost every group
or transaction of the partition. The first such record of a load is logged, then their number.
"""

import logging

_log = logging.getLogger(__name__)


class UnreadableRecords:
    """The unreadable records of one load of one partition."""

    __slots__ = ("_partition", "count")

    def __init__(self, partition: int) -> None:
        self._partition = partition
        self.count = 0

    def skip(self, offset: int, records: int, reason: BaseException) -> None:
        """Count `records` records from `offset` on that are skipped."""
        if self.count == 0:
            _log.error(
                "offset %d in partition %d of an internal topic cannot be read and is skipped: %s: %s",
                offset,
                self._partition,
                type(reason).__name__,
                reason,
            )
        self.count += records

    def loaded(self) -> None:
        if self.count > 1:
            _log.error("%d records in partition %d of an internal topic were skipped", self.count, self._partition)
