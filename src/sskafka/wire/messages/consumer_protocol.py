"""Subscriptions and assignments that consumers of classic groups exchange through JoinGroup and SyncGroup.

The bytes start with the version as int16. An unknown newer version is read as the latest known one, because new fields
are only appended.
"""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.wire.apis import NEVER
from sskafka.wire.schema import Bytes, Int32, String, data, ignorable, message, since


@message
class TopicPartition:
    topic: String = ""
    partitions: list[Int32] = field(default_factory=list)


@message
class ConsumerProtocolSubscription:
    SCHEMA: ClassVar = data(versions=(0, 3), flexible_from=NEVER)

    topics: list[String] = field(default_factory=list)
    user_data: Bytes | None = None
    owned_partitions: Annotated[list[TopicPartition], since(1), ignorable] = field(default_factory=list)
    generation_id: Annotated[Int32, since(2), ignorable] = -1
    rack_id: Annotated[String | None, since(3), ignorable] = None


@message
class ConsumerProtocolAssignment:
    SCHEMA: ClassVar = data(versions=(0, 3), flexible_from=NEVER)

    assigned_partitions: list[TopicPartition] = field(default_factory=list)
    user_data: Bytes | None = None
