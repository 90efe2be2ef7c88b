"""Rewrite batches where the topic's compression or LogAppendTime differs from what the producer sent.

Most topics store batches as they were sent. Only the base offset and the leader epoch change then, and both lie outside
of the checksum.
"""

from sskafka.records.batch import LOG_OVERHEAD_BYTES, NO_TIMESTAMP, BatchHeader, assign_offset, set_append_time
from sskafka.storage.append_checks import AppendChecks, headers_of
from sskafka.storage.log_config import LogConfig


class BatchRewriting:
    __slots__ = ("_checks", "_recompresses", "_uses_append_time", "is_needed")

    def __init__(self, config: LogConfig, checks: AppendChecks) -> None:
        self._checks = checks
        self._recompresses = config.compression_type != "producer"
        self._uses_append_time = config.uses_append_time
        self.is_needed = config.uses_append_time or self._recompresses

    def rewritten(
        self,
        batches: bytearray | memoryview,
        headers: list[BatchHeader],
        now_ms: int,
        recompressed: bytearray | None = None,
    ) -> tuple[bytearray | memoryview, list[BatchHeader], int]:
        """Return the batches, their headers, and the append time that was written into them, if any.

        `recompressed`: the batch with the topic's compression, if a thread has done that already."""
        if self._recompresses:
            batches = self._checks.recompressed(batches, headers) if recompressed is None else recompressed
            headers = headers_of(batches)
        if not self._uses_append_time:
            return batches, headers, NO_TIMESTAMP
        position = 0
        for header in headers:
            set_append_time(batches, position, header, now_ms)
            position += header.size_bytes
        return batches, headers_of(batches), now_ms


def assign_offsets(
    batches: bytearray | memoryview, headers: list[BatchHeader], base_offset: int, leader_epoch: int
) -> int:
    """Write offsets from `base_offset` on and the leader epoch into the batches. Return the next offset."""
    position = 0
    for header in headers:
        assign_offset(batches, position, base_offset, leader_epoch)
        base_offset += header.last_offset_delta + 1
        position += header.length + LOG_OVERHEAD_BYTES
    return base_offset
