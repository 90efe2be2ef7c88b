"""OffsetDelete: forget offsets that a group has committed."""

from dataclasses import dataclass, field
from typing import ClassVar

from sskafka.wire.schema import NEVER, Int16, Int32, String, request, response


@dataclass(slots=True)
class OffsetDeleteRequestPartition:
    partition_index: Int32 = 0


@dataclass(slots=True)
class OffsetDeleteRequestTopic:
    name: String = ""
    partitions: list[OffsetDeleteRequestPartition] = field(default_factory=list)


@dataclass(slots=True)
class OffsetDeleteRequest:
    SCHEMA: ClassVar = request(47, versions=(0, 0), flexible_from=NEVER)

    group_id: String = ""
    topics: list[OffsetDeleteRequestTopic] = field(default_factory=list)


@dataclass(slots=True)
class OffsetDeleteResponsePartition:
    partition_index: Int32 = 0
    error_code: Int16 = 0


@dataclass(slots=True)
class OffsetDeleteResponseTopic:
    name: String = ""
    partitions: list[OffsetDeleteResponsePartition] = field(default_factory=list)


@dataclass(slots=True)
class OffsetDeleteResponse:
    SCHEMA: ClassVar = response(47, versions=(0, 0), flexible_from=NEVER)

    error_code: Int16 = 0
    throttle_time_ms: Int32 = 0
    topics: list[OffsetDeleteResponseTopic] = field(default_factory=list)
