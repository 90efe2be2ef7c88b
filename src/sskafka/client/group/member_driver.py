"""Send the requests of a membership in the background, one at a time, to the coordinator of the group.

The driver has connections of its own: JoinGroup waits until all members have joined, and responses on a connection are
in the order of requests, so that fetches on the same connection would wait, too.

For a classic group the driver also watches the topics: the subscription may be a pattern, and the leader of the group
assigns partitions again when topics get more of them. In the consumer protocol the coordinator does both.
"""

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from math import inf

from sskafka.client.cluster import FIRST_CONTACT_MS, Cluster
from sskafka.client.connection import BrokerConnection
from sskafka.client.coordinators import CoordinatorType, coordinator_connection
from sskafka.client.errors import NobodyListensError, UnsupportedApiError, is_retriable
from sskafka.client.group.classic_membership import ClassicMembership
from sskafka.client.group.consumer_membership import ConsumerMembership
from sskafka.client.group.membership import Membership, TopicSubscription
from sskafka.client.metadata import TopicView
from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from sskafka.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from sskafka.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from sskafka.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from sskafka.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from sskafka.wire.schema import Message

_RESPONSES: dict[type[Message], type[Message]] = {
    ConsumerGroupHeartbeatRequest: ConsumerGroupHeartbeatResponse,
    HeartbeatRequest: HeartbeatResponse,
    JoinGroupRequest: JoinGroupResponse,
    LeaveGroupRequest: LeaveGroupResponse,
    SyncGroupRequest: SyncGroupResponse,
}
JOIN_LAPSE_MS = 5_000
"""The coordinator answers JoinGroup within the rebalance timeout. This much later, the request has failed."""
MISSING_TOPIC_REFRESH_MS = 1_000
_MEMBERS_IN_LEAVE_FROM = 3
_PATTERN_FROM = 1


class MemberDriver:
    """`on_news` is called when the membership may have a change or a failure for the poller."""

    def __init__(
        self,
        cluster: Cluster,
        membership: Membership,
        on_news: Callable[[], None],
        pattern: "re.Pattern[str] | None" = None,
    ) -> None:
        self._cluster = cluster
        self._membership = membership
        self._on_news = on_news
        self._pattern = pattern
        self._kicked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failures = 0
        self._failing_since_ms: float | None = None
        self._failure: Exception | None = None
        self._refresh_at_ms = -inf
        self._counted_topics: frozenset[str] = frozenset()
        self._counted: dict[str, int] = {}
        """The topics of the group and their partitions when this leader assigned them last."""

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    def kick(self) -> None:
        """Look at the membership again: the poller has changed it."""
        self._kicked.set()

    def follow(self, pattern: "re.Pattern[str] | None") -> None:
        """Replace the pattern of the subscription."""
        self._pattern, self._refresh_at_ms = pattern, -inf
        self.kick()

    def lasting_failure(self) -> Exception | None:
        """Return the last error if no request has been answered for `default.api.timeout.ms`, or for `FIRST_CONTACT_MS`
        if this client has never reached the cluster and connections are refused."""
        if self._failing_since_ms is None:
            return None
        lasted_ms = self._cluster.clock.monotonic_ms() - self._failing_since_ms
        is_alone = isinstance(self._failure, NobodyListensError)
        limit_ms = FIRST_CONTACT_MS if is_alone else self._cluster.config.default_api_timeout_ms
        return self._failure if lasted_ms >= limit_ms else None

    async def stop(self) -> None:
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.wait([self._task])
        if isinstance(self._membership, ClassicMembership) and self._membership.is_waiting_for_group:
            await self._cluster.close()  # the next response would wait behind that of the JoinGroup

    async def leave(self, timeout_ms: int) -> None:
        """Leave the group. If that fails, the coordinator removes the member after its session timeout."""
        request = self._membership.leave_request()
        if request is not None:
            deadline_ms = self._cluster.deadline_ms(timeout_ms)
            with suppress(Exception):
                async with asyncio.timeout(timeout_ms / 1000):
                    await self._cluster.retrying(lambda: self._send(request), deadline_ms=deadline_ms)

    # In the background

    async def _run(self) -> None:
        while self._membership.failure is None:
            try:
                await self._step()
            except Exception as error:  # the boundary of the task: the poller raises what cannot be retried
                await self._handle_failure(error)
            self._on_news()

    async def _step(self) -> None:
        now_ms = self._cluster.clock.monotonic_ms()
        self._kicked.clear()
        await self._maybe_look_at_topics(now_ms)
        request = self._membership.next_request(now_ms)
        if request is None:
            self._on_news()
            await self._wait_until(min(self._membership.wake_ms(), self._refresh_at_ms))
            return
        response = await self._send(request)
        error = self._membership.answered(request, response, self._cluster.clock.monotonic_ms())
        if error is not None:
            raise error
        self._failures, self._failing_since_ms = 0, None

    async def _handle_failure(self, error: Exception) -> None:
        if not is_retriable(error) and not _is_transient(error):
            self._membership.give_up(error)
            return
        now_ms = self._cluster.clock.monotonic_ms()
        self._failure = error
        self._failing_since_ms = now_ms if self._failing_since_ms is None else self._failing_since_ms
        self._cluster.coordinators.clear()
        delay_ms = self._cluster.retry_delay_ms(self._failures, error)
        self._failures += 1
        self._membership.failed(now_ms, delay_ms)
        await asyncio.sleep(delay_ms / 1000)

    async def _wait_until(self, wake_ms: float) -> None:
        left_ms = wake_ms - self._cluster.clock.monotonic_ms()
        if left_ms > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(None if left_ms == inf else left_ms / 1000):
                    await self._kicked.wait()

    async def _send(self, request: Message) -> Message:
        connection = await coordinator_connection(
            self._cluster, CoordinatorType.GROUP, self._membership.config.group_id
        )
        request, version = _in_version_of(connection, request)
        config = self._membership.config
        timeout_ms = min(self._cluster.config.request_timeout_ms, config.session_timeout_ms)
        if isinstance(request, JoinGroupRequest | SyncGroupRequest):
            timeout_ms = max(timeout_ms, config.max_poll_interval_ms + JOIN_LAPSE_MS)
        return await connection.request(request, _RESPONSES[type(request)], version=version, timeout_ms=timeout_ms)

    # Topics

    async def _maybe_look_at_topics(self, now_ms: float) -> None:
        membership = self._membership
        if isinstance(membership, ConsumerMembership):
            await self._maybe_learn_topics(membership, now_ms)
        elif isinstance(membership, ClassicMembership):
            if now_ms >= self._refresh_at_ms:
                await self._watch_topics(membership, now_ms)
            topics = membership.topics_to_count
            if topics is not None:
                self._counted_topics, self._counted = topics, await self._count(topics)
                membership.count(self._counted, now_ms)

    async def _maybe_learn_topics(self, membership: ConsumerMembership, now_ms: float) -> None:
        self._refresh_at_ms = inf
        if not membership.unknown_topics:
            return
        topics = membership.subscription.topics if membership.subscription.pattern is None else None
        view = await self._cluster.refresh(topics)
        membership.learn_topics({topic.topic_id: topic.name for topic in view.topics.values()}, now_ms)
        if membership.unknown_topics:  # this broker's metadata is behind the coordinator's
            self._refresh_at_ms = now_ms + self._cluster.config.retry_backoff_ms

    async def _watch_topics(self, membership: ClassicMembership, now_ms: float) -> None:
        """Match the pattern against the topics of the cluster, and count partitions again if this is the leader."""
        if self._pattern is not None:
            view = await self._cluster.refresh(None)
            names = frozenset(topic.name for topic in view.topics.values() if _is_matched(topic, self._pattern))
            membership.resubscribe(TopicSubscription(names), now_ms)
        topics = membership.subscription.topics | self._counted_topics
        counted = await self._count(topics)
        if membership.is_leader and any(counted.get(one) != self._counted.get(one) for one in self._counted_topics):
            membership.rejoin(now_ms)
        age_ms = self._cluster.config.metadata_max_age_ms
        is_complete = topics <= counted.keys()
        self._refresh_at_ms = now_ms + (age_ms if is_complete else min(age_ms, MISSING_TOPIC_REFRESH_MS))

    async def _count(self, topics: frozenset[str]) -> dict[str, int]:
        """Return the number of partitions of each of the topics that exist."""
        view = await self._cluster.refresh(topics)
        found = ((name, view.topics.get(name)) for name in topics)
        return {name: len(topic.partitions) for name, topic in found if topic is not None and topic.partitions}


def _is_matched(topic: TopicView, pattern: "re.Pattern[str]") -> bool:
    return not topic.is_internal and pattern.fullmatch(topic.name) is not None


def _is_transient(error: Exception) -> bool:
    """Return whether the error of a group is retried, although it is not retriable for other requests."""
    return getattr(error, "code", None) in {
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }


def _in_version_of(connection: BrokerConnection, request: Message) -> tuple[Message, int]:
    """Return the request as the newest common version has it."""
    version = connection.version_for(type(request))
    if isinstance(request, LeaveGroupRequest) and version < _MEMBERS_IN_LEAVE_FROM:
        return LeaveGroupRequest(request.group_id, request.members[0].member_id), version
    if isinstance(request, ConsumerGroupHeartbeatRequest) and version < _PATTERN_FROM:
        if request.subscribed_topic_regex:
            text = "does not support subscriptions by pattern with group.protocol=consumer"
            raise UnsupportedApiError(f"the broker at {connection.address} {text}")
        request.subscribed_topic_regex = None
    return request, version
