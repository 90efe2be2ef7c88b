"""A consumer of the classic protocol without a network, in classic groups and in consumer groups."""

from struct import Struct

from consumer_lab import ConsumerLab, topic_id
from group_lab import Asked, GroupLab

from sskafka.groups.assignors import Partitions
from sskafka.model.errors import ErrorCode
from sskafka.wire.codec import decode, encode
from sskafka.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from sskafka.wire.messages.consumer_protocol import TopicPartition as NamedPartitions
from sskafka.wire.messages.leave_group import MemberIdentity

VERSION = Struct(">h")
SUBSCRIPTION_VERSION = 3


def encoded_assignment(numbers: list[int]) -> bytes:
    return VERSION.pack(1) + encode(ConsumerProtocolAssignment([NamedPartitions("orders", numbers)]), 1)


class OldConsumer:
    """A consumer of the classic protocol that gives partitions up before it says so, as cooperative ones do."""

    def __init__(
        self, lab: ConsumerLab, *, instance_id: str | None = None, protocols: tuple[str, ...] = ("cooperative",)
    ) -> None:
        self.lab = lab
        self.instance_id = instance_id
        self.protocols = protocols
        self.member_id = ""
        self.generation = -1
        self.numbers: list[int] = []

    @property
    def owned(self) -> Partitions:
        return frozenset((topic_id("orders"), number) for number in self.numbers)

    def join(self) -> Asked:
        asked = self.ask_to_join()
        if asked.is_answered and asked.code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = asked.response.member_id
            asked = self.ask_to_join()
        self.joined(asked)
        return asked

    def ask_to_join(self, **options: int) -> Asked:
        owned = [NamedPartitions("orders", self.numbers)] if self.numbers else []
        subscription = ConsumerProtocolSubscription(["orders"], owned_partitions=owned)
        metadata = VERSION.pack(SUBSCRIPTION_VERSION) + encode(subscription, SUBSCRIPTION_VERSION)
        protocols = [(name, metadata) for name in self.protocols]
        return self.lab.join(self.member_id, protocols, instance_id=self.instance_id, **options)

    def joined(self, asked: Asked) -> None:
        if asked.is_answered and asked.error is None and asked.code is ErrorCode.NONE:
            self.member_id, self.generation = asked.response.member_id, asked.response.generation_id

    def sync(self, shares: dict[str, bytes] | None = None) -> Asked:
        asked = self.lab.sync(self.member_id, self.generation, shares, instance_id=self.instance_id)
        self.synced(asked)
        return asked

    def synced(self, asked: Asked) -> None:
        if asked.is_answered and asked.code is ErrorCode.NONE:
            data = asked.response.assignment
            (version,) = VERSION.unpack_from(data)
            found = decode(ConsumerProtocolAssignment, version, data, VERSION.size).assigned_partitions
            self.numbers = sorted(index for topic in found for index in topic.partitions)

    def heartbeat(self) -> ErrorCode:
        return GroupLab.heartbeat(self.lab, self.member_id, self.generation, self.instance_id)

    def beat(self) -> None:
        """Heartbeat, and rejoin if the response says so, as clients do."""
        if self.heartbeat() in {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION}:
            assert self.join().code is ErrorCode.NONE
            self.sync()

    def leave(self) -> Asked:
        return self.lab.leave(MemberIdentity(self.member_id, self.instance_id))
