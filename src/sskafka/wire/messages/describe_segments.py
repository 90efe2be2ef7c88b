"""DescribeSegments, an SSKafka API: the files of one replica on a broker, without keys and values of records."""

from dataclasses import field
from enum import IntEnum
from typing import ClassVar

from sskafka.wire.schema import Bool, Int8, Int16, Int32, Int64, String, message, request, response

NOTHING = -1
"""Stands for a number that does not exist."""


class SegmentPart(IntEnum):
    SEGMENTS = 0
    BATCHES = 1
    INDEX = 2


@message
class DescribeSegmentsRequest:
    SCHEMA: ClassVar = request(20007)

    topic: String = ""
    partition: Int32 = 0
    part: Int8 = 0
    """A SegmentPart. The fields below select batches and index entries."""
    base_offset: Int64 = 0
    first: Int64 = 0
    """Position of the first batch, or number of the first index entry."""
    offset: Int64 = NOTHING
    """If set, begin with the batch of the last index entry before this offset; `first` is ignored."""
    limit: Int32 = 0


@message
class SegmentDescription:
    base_offset: Int64 = 0
    size_bytes: Int64 = 0
    modified_ms: Int64 = 0
    offset_index_entries: Int64 = 0
    time_index_entries: Int64 = 0
    transaction_index_bytes: Int64 = 0


@message
class BatchDescription:
    position: Int64 = 0
    size_bytes: Int64 = 0
    base_offset: Int64 = 0
    last_offset: Int64 = 0
    records: Int64 = 0
    max_timestamp_ms: Int64 = 0
    compression: String = ""
    magic: Int8 = 0
    is_valid: Bool = False
    leader_epoch: Int32 = NOTHING
    producer_id: Int64 = NOTHING
    producer_epoch: Int16 = NOTHING
    base_sequence: Int32 = NOTHING
    is_transactional: Bool = False
    is_control: Bool = False


@message
class IndexEntryDescription:
    key: Int64 = 0
    """An offset, or a timestamp in the time index."""
    value: Int64 = 0
    """A position, or an offset in the time index."""


@message
class DescribeSegmentsResponse:
    SCHEMA: ClassVar = response(20007)

    error_code: Int16 = 0
    error_message: String | None = None
    directory: String = ""
    segments: list[SegmentDescription] = field(default_factory=list)
    """Oldest first."""
    batches: list[BatchDescription] = field(default_factory=list)
    next_position: Int64 = NOTHING
    problem: String | None = None
    """Why the segment cannot be read from there on."""
    offset_index: list[IndexEntryDescription] = field(default_factory=list)
    time_index: list[IndexEntryDescription] = field(default_factory=list)
    has_more: Bool = False
    """Whether the indexes have more entries."""
