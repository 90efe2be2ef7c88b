"""Records of __transaction_state. Keys and values are framed as in `group_records`."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.wire.apis import NEVER
from sskafka.wire.schema import Int8, Int16, Int32, Int64, String, data, message, tagged


@message
class TransactionLogKey:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=NEVER, key=0)

    transactional_id: String = ""


@message
class PartitionsSchema:
    topic: String = ""
    partition_ids: list[Int32] = field(default_factory=list)


@message
class TransactionLogValue:
    SCHEMA: ClassVar = data(versions=(0, 1), flexible_from=1, key=0)

    producer_id: Int64 = 0
    previous_producer_id: Annotated[Int64, tagged(0, since=1)] = -1
    next_producer_id: Annotated[Int64, tagged(1, since=1)] = -1
    producer_epoch: Int16 = 0
    next_producer_epoch: Annotated[Int16, tagged(3, since=1)] = -1
    transaction_timeout_ms: Int32 = 0
    transaction_status: Int8 = 0
    transaction_partitions: list[PartitionsSchema] | None = field(default_factory=list)
    transaction_last_update_timestamp_ms: Int64 = 0
    transaction_start_timestamp_ms: Int64 = 0
    client_transaction_version: Annotated[Int16, tagged(2, since=1)] = 0
    last_producer_epoch: Annotated[Int16, tagged(1000, since=1)] = -1
    """Not part of Kafka's schema; other readers skip the unknown tag."""
