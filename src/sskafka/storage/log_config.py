"""The topic settings that a log needs, resolved once so that the hot path reads plain attributes."""

from collections.abc import Mapping
from typing import Any

from sskafka.model.values import value

_LONG_MAX = 2**63 - 1
INDEX_INTERVAL_BYTES_MAX = 64 * 1024
"""Larger values of index.interval.bytes count as this one: the event loop reads all headers between two entries of an
index for a fetch, and there are up to a thousand in 64 KiB."""


@value
class LogConfig:
    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3_600_000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    flush_messages: int = _LONG_MAX
    flush_ms: int = _LONG_MAX
    retention_bytes: int = -1
    retention_ms: int = 7 * 24 * 3_600_000
    file_delete_delay_ms: int = 60_000
    max_message_bytes: int = 1_048_588
    cleanup_policy: tuple[str, ...] = ("delete",)
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = _LONG_MAX
    message_timestamp_after_max_ms: int = 3_600_000
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    preallocate: bool = False
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = _LONG_MAX
    delete_retention_ms: int = 24 * 3_600_000

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "LogConfig":
        """Build the config from Kafka's topic settings (`segment.bytes`, ...), as text or parsed. Missing ones get
        defaults."""
        values = {field: settings.get(field.replace("_", ".")) for field in cls.__dataclass_fields__}
        values["segment_bytes"] = settings.get("internal.segment.bytes") or values["segment_bytes"]
        parsed = {field: _parsed(field, value) for field, value in values.items() if value is not None}
        if "index_interval_bytes" in parsed:
            parsed["index_interval_bytes"] = min(parsed["index_interval_bytes"], INDEX_INTERVAL_BYTES_MAX)
        return cls(**parsed)

    def compression_level(self, codec: str) -> int | None:
        """Return the compression level, or None for codecs without levels."""
        level: int | None = getattr(self, f"compression_{codec}_level", None)
        return level

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def roll_ms(self) -> int:
        """Age at which a segment is rolled. max.compaction.lag.ms counts too: only closed segments can be compacted."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.is_compacted else self.segment_ms

    @property
    def is_deleting(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def uses_append_time(self) -> bool:
        return self.message_timestamp_type == "LogAppendTime"


def _parsed(field: str, value: Any) -> Any:
    if field == "cleanup_policy":
        return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else tuple(value)
    if field == "preallocate":
        return value in {True, "true"}
    default = LogConfig.__dataclass_fields__[field].default
    return type(default)(value) if isinstance(default, int | float) else value
