"""DescribeLogDirs: the log directories of a broker, and the sizes of the replicas in them."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.wire.schema import Bool, Int16, Int32, Int64, String, ignorable, message, request, response, since


@message
class DescribableLogDirTopic:
    topic: String = ""
    partitions: list[Int32] = field(default_factory=list)


@message
class DescribeLogDirsRequest:
    SCHEMA: ClassVar = request(35)

    topics: list[DescribableLogDirTopic] | None = field(default_factory=list)


@message
class DescribeLogDirsPartition:
    partition_index: Int32 = 0
    partition_size: Int64 = 0
    offset_lag: Int64 = 0
    is_future_key: Bool = False


@message
class DescribeLogDirsTopic:
    name: String = ""
    partitions: list[DescribeLogDirsPartition] = field(default_factory=list)


@message
class DescribeLogDirsResult:
    error_code: Int16 = 0
    log_dir: String = ""
    topics: list[DescribeLogDirsTopic] = field(default_factory=list)
    total_bytes: Annotated[Int64, since(4), ignorable] = -1
    usable_bytes: Annotated[Int64, since(4), ignorable] = -1
    is_cordoned: Annotated[Bool, since(5), ignorable] = False


@message
class DescribeLogDirsResponse:
    SCHEMA: ClassVar = response(35)

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(3), ignorable] = 0
    results: list[DescribeLogDirsResult] = field(default_factory=list)
