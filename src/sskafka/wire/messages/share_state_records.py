"""Records of __share_group_state. Keys and values are framed as in `group_records`."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.model.ids import ZERO_UUID
from sskafka.wire.apis import NEVER
from sskafka.wire.schema import Int8, Int16, Int32, Int64, String, Uuid, data, message, tagged


@message
class ShareSnapshotKey:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=NEVER, key=0)

    group_id: String = ""
    topic_id: Uuid = ZERO_UUID
    partition: Int32 = 0


@message
class StateBatch:
    first_offset: Int64 = 0
    last_offset: Int64 = 0
    delivery_state: Int8 = 0
    delivery_count: Int16 = 0


@message
class ShareSnapshotValue:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0, key=0)

    snapshot_epoch: Int32 = 0
    state_epoch: Int32 = 0
    leader_epoch: Int32 = 0
    start_offset: Int64 = 0
    delivery_complete_count: Annotated[Int32, tagged(0)] = -1
    create_timestamp: Int64 = 0
    write_timestamp: Int64 = 0
    state_batches: list[StateBatch] = field(default_factory=list)


@message
class ShareUpdateKey:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=NEVER, key=1)

    group_id: String = ""
    topic_id: Uuid = ZERO_UUID
    partition: Int32 = 0


@message
class ShareUpdateValue:
    SCHEMA: ClassVar = data(versions=(0, 0), flexible_from=0, key=1)

    snapshot_epoch: Int32 = 0
    leader_epoch: Int32 = 0
    start_offset: Int64 = 0
    delivery_complete_count: Annotated[Int32, tagged(0)] = -1
    state_batches: list[StateBatch] = field(default_factory=list)
