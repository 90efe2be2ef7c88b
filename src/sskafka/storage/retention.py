"""Decide which segments `retention.ms` and `retention.bytes` keep. Whole segments are deleted, the oldest first."""

from sskafka.storage.log_config import LogConfig
from sskafka.storage.segments import Segments


def retained_from(segments: Segments, config: LogConfig, now_ms: int, high_watermark: int, log_end_offset: int) -> int:
    """Return the new log start offset: a segment's base offset, or the log end offset if nothing is kept."""
    if not config.is_deleting:
        return segments.first.base_offset
    excess_bytes = segments.size_bytes - config.retention_bytes if config.retention_bytes >= 0 else -1
    all_segments = list(segments)
    ends = [segment.base_offset for segment in all_segments[1:]] + [log_end_offset]
    for segment, end_offset in zip(all_segments, ends, strict=True):
        excess_bytes -= segment.size_bytes
        is_expired = 0 <= config.retention_ms < now_ms - segment.newest_ms
        if end_offset > high_watermark or segment.size_bytes == 0 or not (is_expired or excess_bytes >= 0):
            return segment.base_offset
    return log_end_offset
