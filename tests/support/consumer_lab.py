"""Consumers of the KIP-848 protocol without a network: they heartbeat, give up what they must and take the rest."""

from typing import Any

from group_lab import GROUP, Asked, GroupLab

from sskafka.groups.assignors import NOTHING, Partitions
from sskafka.groups.consumer_group import ConsumerGroup, Topic
from sskafka.groups.consumer_heartbeat import Heartbeat
from sskafka.groups.consumer_records import partitions_of
from sskafka.groups.group_settings import ConsumerTimings
from sskafka.groups.members import Client
from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions

REBALANCE_MS = 20_000


def topic_id(name: str) -> bytes:
    return name.encode()[:16].ljust(16, b"-")


class ConsumerLab(GroupLab):
    """Assigns at once, without an interval, unless `consumer_timings` say otherwise."""

    def __init__(self, topics: dict[str, int] | None = None, **settings: Any) -> None:
        super().__init__(**{"consumer_timings": ConsumerTimings(assignment_interval_ms=0), **settings})
        self.set_topics(topics or {"orders": 4})

    def set_topics(self, counts: dict[str, int]) -> None:
        self.topics = {name: Topic(topic_id(name), count) for name, count in counts.items()}

    @property
    def consumers(self) -> ConsumerGroup:
        group = self.shard.groups[GROUP]
        assert isinstance(group, ConsumerGroup)
        return group

    def heartbeat(self, request: ConsumerGroupHeartbeatRequest, version: int = 1) -> Asked:
        client = Client(f"client of {request.member_id}", "/10.0.0.1")
        return self.ask(
            lambda completion: self.shard.consumer.heartbeat(Heartbeat(request, version, client), self.time.now_ms())
        )


class LabConsumer:
    """`owned` is what its application reads now."""

    def __init__(
        self,
        lab: ConsumerLab,
        member_id: str,
        *topics: str,
        regex: str | None = None,
        instance_id: str | None = None,
        assignor: str | None = None,
    ) -> None:
        self.lab = lab
        self.group_id = GROUP
        self.member_id = member_id
        self.topics = list(topics) or ([] if regex else ["orders"])
        self.regex = regex
        self.instance_id = instance_id
        self.assignor = assignor
        self.epoch = 0
        self.owned: Partitions = NOTHING
        self.assigned: Partitions = NOTHING
        self.has_missed_answer = False
        """Send all fields with the next heartbeat, as clients do after an error."""

    def join(self) -> Asked:
        self.epoch, self.owned = 0, NOTHING
        return self._send(
            ConsumerGroupHeartbeatRequest(
                self.group_id,
                self.member_id,
                0,
                instance_id=self.instance_id,
                rebalance_timeout_ms=REBALANCE_MS,
                subscribed_topic_names=self.topics,
                subscribed_topic_regex=self.regex,
                server_assignor=self.assignor,
                topic_partitions=[],
            )
        )

    def beat(self) -> Asked:
        """Report the owned partitions, apply the assignment, and revoke partitions that are no longer assigned."""
        owned = [TopicPartitions(topic, indexes) for topic, indexes in self.owned.by_topic()]
        request = ConsumerGroupHeartbeatRequest(
            self.group_id, self.member_id, self.epoch, instance_id=self.instance_id, topic_partitions=owned
        )
        if self.has_missed_answer:
            request.rebalance_timeout_ms = REBALANCE_MS
            request.subscribed_topic_names, request.subscribed_topic_regex = self.topics, self.regex
            self.has_missed_answer = False
        return self._send(request)

    def say(self, **fields: object) -> Asked:
        return self._send(ConsumerGroupHeartbeatRequest(self.group_id, self.member_id, self.epoch, **fields))  # type: ignore[arg-type]

    def leave(self, epoch: int = -1) -> Asked:
        self.owned = NOTHING
        request = ConsumerGroupHeartbeatRequest(self.group_id, self.member_id, epoch, instance_id=self.instance_id)
        return self.lab.heartbeat(request)

    def _send(self, request: ConsumerGroupHeartbeatRequest) -> Asked:
        asked = self.lab.heartbeat(request)
        if asked.code is ErrorCode.NONE:
            self.epoch = asked.response.member_epoch
            if asked.response.assignment is not None:
                self.assigned = partitions_of(asked.response.assignment.topic_partitions)
                self.owned = self.assigned
        return asked

    @property
    def numbers(self) -> list[int]:
        return sorted(index for _, index in self.owned)


def settle(*consumers: LabConsumer, rounds: int = 6) -> None:
    for _ in range(rounds):
        for consumer in consumers:
            assert consumer.beat().code is ErrorCode.NONE
