"""The membership of one consumer in one group, as a state machine without I/O. Time is an argument.

Two callers share a membership:

    the driver   sends `next_request` and passes the response to `answered`, or calls `failed` when there is none. It
                 does so in the background, one request at a time, and calls again at `wake_ms`.
    the poller   runs when the application polls. It calls `polled`, then applies `change` for as long as there is one
                 and confirms each of them with `applied`.

A change is one step of an assignment:

    REVOKE   another member is waiting for these partitions. The consumer still owns them and may commit their offsets.
    LOSE     the group has removed this member. Other members may own the partitions already; commits are refused.
    ASSIGN   the consumer may read these partitions from now on.

Only the poller changes `owned`, so that no record of a partition is returned after its revocation was confirmed. If
the application does not poll for `max.poll.interval.ms`, the member leaves the group and loses its partitions. It joins
again with the next poll.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from enum import Enum
from math import inf
from typing import NamedTuple, TypeAlias

from sskafka.client.config import GroupConfig
from sskafka.client.errors import broker_error
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.wire.schema import Message

OwnedPartitions: TypeAlias = frozenset[TopicPartition]
NEVER_MS = inf

RETRIED_CODES = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    }
)
"""Codes after which the same request is sent again, after the coordinator has been looked up again."""


class ChangeKind(Enum):
    REVOKE = "revoke"
    LOSE = "lose"
    ASSIGN = "assign"


class MembershipChange(NamedTuple):
    kind: ChangeKind
    partitions: OwnedPartitions


class TopicSubscription(NamedTuple):
    topics: frozenset[str]
    pattern: str | None = None
    """A regular expression for the consumer protocol, whose coordinator matches it against the names of topics."""


class CommitterIdentity(NamedTuple):
    """The fields of OffsetCommit by which the coordinator recognizes the member."""

    generation: int
    member_id: str
    instance_id: str | None


class Membership(ABC):
    def __init__(self, config: GroupConfig, subscription: TopicSubscription, now_ms: float) -> None:
        self.config = config
        self.subscription = subscription
        self.owned: OwnedPartitions = frozenset()
        self.change: MembershipChange | None = None
        """What the poller has to apply next."""
        self.failure: Exception | None = None
        """The error for which this member has given up. The poller raises it."""
        self._removals: Counter[TopicPartition] = Counter()
        self._send_at_ms = now_ms
        self._poll_deadline_ms = now_ms + config.max_poll_interval_ms
        self._is_expired = False

    # For the driver

    @abstractmethod
    def next_request(self, now_ms: float) -> Message | None:
        """Return the request to send now. It is returned again until it is answered, or until it is obsolete."""

    @abstractmethod
    def answered(self, request: Message, response: Message, now_ms: float) -> KafkaError | None:
        """Handle a response; return the error in it if the request has to be sent again, to a new coordinator."""

    @abstractmethod
    def leave_request(self) -> Message | None:
        """Return the request to leave the group when the consumer is closed, or None if there is nothing to leave."""

    @property
    @abstractmethod
    def is_sending(self) -> bool:
        """Whether there will be a request to send without a call of the poller."""

    def failed(self, now_ms: float, delay_ms: float) -> None:
        """Send the request again after `delay_ms`: there was no response, or one with a retriable error."""
        self._send_at_ms = now_ms + delay_ms

    def wake_ms(self) -> float:
        """Return when the driver has to call `next_request` again, unless something else happens before."""
        send_at_ms = self._send_at_ms if self.is_sending else NEVER_MS
        return min(send_at_ms, NEVER_MS if self._is_expired else self._poll_deadline_ms)

    def give_up(self, error: Exception) -> None:
        """End the membership: the error will not go away by itself."""
        self.failure = error
        self._lose_partitions()

    # For the poller

    def polled(self, now_ms: float) -> bool:
        """Note that the application has polled; return whether the driver has to look at the membership again."""
        self._poll_deadline_ms = now_ms + self.config.max_poll_interval_ms
        was_expired = self._is_expired
        if was_expired:
            self._is_expired = False
            self._maybe_join_again(now_ms)
        return was_expired

    def applied(self, change: MembershipChange, now_ms: float) -> None:
        """Note that the poller has applied `change`, which may have been replaced while the poller was at it."""
        if change.kind is ChangeKind.ASSIGN:
            assert self.change is change, "a replaced assignment must not be applied"
            self.owned |= change.partitions
        else:
            self.owned -= change.partitions
            self._removals.update(change.partitions)
        if self.change is change:
            self.change = None
        elif self.change is not None:
            left = self.change.partitions - change.partitions
            self.change = self.change._replace(partitions=left) if left else None
        if self.change is None and self.failure is None:
            self._continue(now_ms)

    def removals(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return how often each of the partitions was revoked or lost."""
        return {partition: self._removals[partition] for partition in partitions}

    @abstractmethod
    def resubscribe(self, subscription: TopicSubscription, now_ms: float) -> None:
        """Replace the subscription."""

    @abstractmethod
    def identity(self) -> CommitterIdentity | None:
        """Return the member as which offsets are committed, or None if the consumer is no member now."""

    @abstractmethod
    def commit_refused(self, code: int, identity: CommitterIdentity, now_ms: float) -> None:
        """Handle an error of OffsetCommit that concerns the member."""

    # For subclasses

    @abstractmethod
    def _continue(self, now_ms: float) -> None:
        """Decide on the next step after the poller has applied a change."""

    @abstractmethod
    def _maybe_join_again(self, now_ms: float) -> None:
        """Join again after the application has polled too late, unless the LOSE is not applied yet."""

    def _lose_partitions(self) -> None:
        """Replace whatever change was planned: the group has removed this member."""
        self.change = MembershipChange(ChangeKind.LOSE, self.owned) if self.owned else None

    def _next_step_to(self, target: OwnedPartitions) -> MembershipChange | None:
        """Return the next change from the owned partitions to `target`: revoke first, then assign."""
        if self.owned - target:
            return MembershipChange(ChangeKind.REVOKE, self.owned - target)
        if target - self.owned:
            return MembershipChange(ChangeKind.ASSIGN, target - self.owned)
        return None

    def _has_polled_too_late(self, now_ms: float) -> bool:
        return not self._is_expired and now_ms >= self._poll_deadline_ms

    def _refused(self, code: int, message: str) -> None:
        self.give_up(broker_error(code, message))
