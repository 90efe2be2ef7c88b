"""Periodic work of the active controller.

Fence brokers that ended or are silent, elect preferred leaders, remove expired delegation tokens.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from sskafka.controller.active_controller import ActiveController
from sskafka.controller.decisions import Decisions
from sskafka.metadata.brokers.presence import TAKEOVER_GRACE_MS
from sskafka.metadata.brokers.sessions import BrokerSessions
from sskafka.metadata.controller_result import ControllerResult
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import NoOpRecord
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.settings import Settings
from sskafka.quorum.committed_metadata import CommittedMetadata
from sskafka.runtime.clock import Clock

_log = logging.getLogger(__name__)

CHECKS_PER_SESSION = 8
PAUSE_INTERVALS = 3
"""A gap of this number of intervals means that this process did not run: it was stopped, or the machine slept."""


class PeriodicTasks:
    def __init__(
        self,
        controller: ActiveController,
        committed: CommittedMetadata,
        decisions: Decisions,
        sessions: BrokerSessions,
        settings: Settings,
        clock: Clock,
    ) -> None:
        self._controller = controller
        self._committed = committed
        self._decisions = decisions
        self._sessions = sessions
        self._settings = settings
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._checked_ms = 0

    def begin(self) -> None:
        """Start the work: this node has become the active controller."""
        self.end()
        self._checked_ms = self._now_ms()
        self._sessions.take_over(self._committed.image, self._checked_ms)
        self._check_sessions()
        self._timers["takeover"] = self._loop.call_later(TAKEOVER_GRACE_MS / 1000, self._fence_expired)
        self._rebalance_later()
        self._remove_expired_tokens_later()
        self._append_when_idle(self._committed.image.next_offset)

    def broker_was_probed(self) -> None:
        """Take the result of a probe, which may be that a broker has ended."""
        if self._controller.is_active:
            self._fence_expired()

    def end(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _now_ms(self) -> int:
        return int(self._clock.monotonic_ms())

    # ---- brokers that ended or are silent

    def _check_sessions(self) -> None:
        interval_ms = self._settings["broker.session.timeout.ms"] // CHECKS_PER_SESSION
        now_ms = self._now_ms()
        since_ms, self._checked_ms = now_ms - self._checked_ms, now_ms
        if since_ms > interval_ms * PAUSE_INTERVALS:
            _log.warning(
                "the controller did not run for %d ms; the sessions of brokers are extended by this time", since_ms
            )
            self._sessions.extend(since_ms)
        self._fence_expired()
        self._timers["sessions"] = self._loop.call_later(interval_ms / 1000, self._check_sessions)

    def _fence_expired(self) -> None:
        expired = self._sessions.expired(self._committed.image, self._now_ms())
        if expired:
            _log.warning("brokers %s have ended or sent no heartbeat within the session timeout: fenced", expired)
            self._submit(self._decisions.fence_expired)

    # ---- preferred leaders

    def _rebalance_later(self) -> None:
        if self._settings["auto.leader.rebalance.enable"]:
            interval_s = self._settings["leader.imbalance.check.interval.seconds"]
            self._timers["leaders"] = self._loop.call_later(interval_s, self._rebalance)

    def _rebalance(self) -> None:
        self._submit(self._decisions.of_clients.rebalance_leaders, self._rebalanced)
        self._rebalance_later()

    def _rebalanced(self, is_more_to_do: bool) -> None:
        """Elect again at once if there were too many partitions for one decision."""
        if is_more_to_do and "leaders" in self._timers:
            self._timers["leaders"].cancel()
            self._rebalance()

    # ---- delegation tokens

    def _remove_expired_tokens_later(self) -> None:
        if self._settings["delegation.token.secret.key"] is not None:
            interval_ms = self._settings["delegation.token.expiry.check.interval.ms"]
            self._timers["tokens"] = self._loop.call_later(interval_ms / 1000, self._remove_expired_tokens)

    def _remove_expired_tokens(self) -> None:
        decide = self._decisions.of_clients.remove_expired_tokens
        if decide(self._committed.image).records:
            self._submit(decide)
        self._remove_expired_tokens_later()

    # ---- an idle log

    def _append_when_idle(self, seen_offset: int) -> None:
        """Append no-op records every metadata.max.idle.interval.ms, by which replicas of the log see that they are
        up to date."""
        interval_ms = self._settings["metadata.max.idle.interval.ms"]
        if not interval_ms:
            return
        if self._committed.image.next_offset == seen_offset:
            self._submit(lambda _: ControllerResult([NoOpRecord()], None))
        next_offset = self._committed.image.next_offset
        self._timers["idle"] = self._loop.call_later(interval_ms / 1000, self._append_when_idle, next_offset)

    # ---- decisions without a caller

    def _submit(
        self, decide: Callable[[ClusterImage], ControllerResult[Any]], done: Callable[[Any], None] | None = None
    ) -> None:
        task = self._loop.create_task(self._decide(decide, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _decide(
        self, decide: Callable[[ClusterImage], ControllerResult[Any]], done: Callable[[Any], None] | None
    ) -> None:
        try:
            response = await self._controller.submit(decide)
            if done is not None:
                done(response)
        except KafkaError as error:
            if error.code is not ErrorCode.NOT_CONTROLLER:
                _log.exception("a duty of the controller was not done")
        except Exception:  # task boundary: the next round tries again
            _log.exception("a duty of the controller was not done")
