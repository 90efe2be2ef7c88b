"""Fetch from one leader all partitions that this broker follows there, over one connection.

    send session changes -> [the leader answers, or waits for records] -> append, truncate or pause each partition,
    a bounded number of bytes for each turn of the event loop -> wait for flushes (flush.messages) -> send again

One request is pending at a time. Its fetch offsets tell the leader what this broker has, so the request is sent only
when that is durable as configured. A partition that fails is paused while the others continue. Pauses start short and
grow up to replica.fetch.backoff.ms, because most failures are metadata races: a new leader that does not know of its
leadership yet.
"""

import logging
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from sskafka.model.errors import ErrorCode
from sskafka.model.ids import EpochEnd
from sskafka.model.settings import Settings
from sskafka.partition.truncation import UNDEFINED
from sskafka.replication.cluster_links import ClusterLinks
from sskafka.replication.fetch_session import FetchSessionHandler, Key, PartitionFetchData
from sskafka.replication.follower_log import (
    OffsetReset,
    append_fetched,
    restart_after_leader_deletion,
    truncate_by,
)
from sskafka.replication.partition import Partition
from sskafka.replication.replica_counters import ReplicaCounters
from sskafka.replication.throttle import Throttle
from sskafka.runtime.clock import Clock
from sskafka.storage.errors import CorruptBatchError, RejectedAppendError, StorageError
from sskafka.wire.messages.fetch import FetchRequest, FetchResponse, PartitionData, ReplicaState
from sskafka.wire.schema import Message

_log = logging.getLogger(__name__)

FIRST_PAUSE_MS = 20
TURN_BYTES = 1024 * 1024
"""Bytes to append in one turn of the event loop, so that the clients of this broker get their turns."""


FETCH_VERSION_MIN: dict[type[Message], int] = {FetchRequest: 15}
"""The first version of Fetch in which followers send their broker epoch."""


class FetchLimits(NamedTuple):
    min_bytes: int
    partition_max_bytes: int
    response_max_bytes: int
    max_wait_ms: int
    backoff_ms: int

    @classmethod
    def from_settings(cls, settings: Settings) -> "FetchLimits":
        return cls(
            settings["replica.fetch.min.bytes"],
            settings["replica.fetch.max.bytes"],
            settings["replica.fetch.response.max.bytes"],
            settings["replica.fetch.wait.max.ms"],
            settings["replica.fetch.backoff.ms"],
        )


class ReplicaFetcher:
    def __init__(
        self,
        broker_id: int,
        leader_id: int,
        links: ClusterLinks,
        clock: Clock,
        limits: FetchLimits,
        counters: ReplicaCounters,
        throttle: Throttle,
    ) -> None:
        self._broker_id = broker_id
        self._leader_id = leader_id
        self._links = links
        self._link = links.link_to(leader_id)
        self._clock = clock
        self._limits = limits
        self._counters = counters
        self._throttle = throttle
        self._session = FetchSessionHandler(limits.partition_max_bytes)
        self._partitions: dict[Key, Partition] = {}
        self._to_send: set[Key] = set()
        """Partitions whose fetch parameters may differ from what the leader knows."""
        self._paused: set[Key] = set()
        self._held_back: dict[Key, Partition] = {}
        """Paused partitions that wait for the throttle."""
        self._throttle_timer = 0
        self._to_forget: set[Key] = set()
        self._failures: dict[Key, int] = {}
        """Consecutive failures."""
        self._lost_requests = 0
        self._unflushed: set[Key] = set()
        self._answers: deque[tuple[Key, PartitionData]] = deque()
        self._is_busy = False
        """Whether a request is pending, its answers are being processed, or a pause after a failure lasts."""
        self._is_stopped = False

    @property
    def is_idle(self) -> bool:
        return not self._partitions

    # -- fetched partitions

    def add(self, partition: Partition) -> None:
        """Fetch the partition in its current leader epoch from its log end offset, even if it is fetched already."""
        key = _key(partition)
        self._partitions[key] = partition
        self._paused.discard(key)
        self._held_back.pop(key, None)
        self._to_send.add(key)
        self._maybe_await_flush(key, partition)
        self._soon(self._maybe_send)

    def remove(self, partition: Partition) -> None:
        key = _key(partition)
        if self._partitions.pop(key, None) is not None:
            self._to_send.discard(key)
            self._paused.discard(key)
            self._held_back.pop(key, None)
            self._unflushed.discard(key)
            self._failures.pop(key, None)
            self._to_forget.add(key)
            self._soon(self._maybe_send)

    def stop(self) -> None:
        self._is_stopped = True
        self._partitions.clear()
        self._held_back.clear()
        self._answers.clear()
        self._link.close()

    def _soon(self, call: Callable[[], None]) -> None:
        self._links.call_later(0, call)

    # -- requests

    def _maybe_send(self) -> None:
        if self._is_busy or self._is_stopped or not self._is_flushed():
            return
        session = self._session
        if session.is_full:
            self._to_send.update(key for key in self._partitions if key not in self._paused)
        if not self._to_send and (session.is_full or session.known.keys() <= self._to_forget):
            return  # all partitions are paused or removed
        wanted = {key: _fetch_data_of(self._partitions[key]) for key in self._to_send}
        topics, forgotten = session.build_request(wanted, self._to_forget)
        self._to_send.clear()
        self._to_forget.clear()
        self._is_busy = True
        limits = self._limits
        request = FetchRequest(
            replica_state=ReplicaState(self._broker_id, self._links.broker_epoch()),
            max_wait_ms=limits.max_wait_ms,
            min_bytes=limits.min_bytes,
            max_bytes=limits.response_max_bytes,
            session_id=session.session_id,
            session_epoch=session.epoch,
            topics=topics,
            forgotten_topics_data=forgotten,
        )
        self._link.ask(request, FetchResponse, self._answered)

    def _is_flushed(self) -> bool:
        """Return whether appended data is as durable as flush.messages requires. A failed log does not block the
        others."""
        for key in list(self._unflushed):
            partition = self._partitions[key]
            if partition.log_directory.failure is not None or partition.lacks_room:
                self._pause(key)
            elif partition.ready_offset < partition.log_end_offset:
                return False
            self._unflushed.discard(key)
        return True

    # -- responses

    def _answered(self, answer: FetchResponse | Exception) -> None:
        if self._is_stopped:
            return
        if isinstance(answer, Exception):
            level = logging.DEBUG if self._lost_requests else logging.INFO
            _log.log(level, "fetching from broker %d failed: %s", self._leader_id, answer)
            self._begin_again(self._pause_ms(self._lost_requests))
            self._lost_requests += 1
        elif answer.error_code != ErrorCode.NONE:
            _log.info("broker %d ended the fetch session: %s", self._leader_id, ErrorCode(answer.error_code).name)
            self._begin_again(0 if answer.error_code in _SESSION_IS_GONE else self._limits.backoff_ms)
        else:
            self._lost_requests = 0
            self._session.answered(answer.session_id)
            self._answers.extend(
                ((topic.topic_id, data.partition_index), data)
                for topic in answer.responses
                for data in topic.partitions
            )
            self._process_answers()

    def _begin_again(self, delay_ms: float) -> None:
        self._session.lost()
        self._links.call_later(delay_ms / 1000, self._go_on)

    def _go_on(self) -> None:
        self._is_busy = False
        self._maybe_send()

    def _process_answers(self) -> None:
        """Process answers for one turn of the event loop. Send the next request when all are processed."""
        room = TURN_BYTES
        while self._answers and room > 0:
            key, data = self._answers.popleft()
            room -= self._take(key, data)
        if self._answers:
            self._soon(self._process_answers)
        else:
            self._go_on()

    def _take(self, key: Key, data: PartitionData) -> int:
        """Apply one partition's answer. Return the number of bytes appended."""
        partition, wanted = self._partitions.get(key), self._session.known.get(key)
        if partition is None or wanted is None or key in self._paused:
            return 0
        if wanted[:2] != (partition.leadership.leader_epoch, partition.log_end_offset):
            self._refetch(key)
            return 0
        try:
            return self._apply(key, partition, data)
        except (StorageError, CorruptBatchError, RejectedAppendError) as error:
            _log.error(
                "%s: the data from broker %d could not be appended: %s",
                partition.topic_partition,
                self._leader_id,
                error,
            )
        except Exception:  # a failure affects only its partition
            _log.exception("%s: unexpected error while fetching", partition.topic_partition)
        self._pause(key)
        return 0

    def _refetch(self, key: Key) -> None:
        """Forget and add the partition again: the answer was not applied, so the leader must not assume that it was."""
        self._to_forget.add(key)
        self._to_send.add(key)

    def _apply(self, key: Key, partition: Partition, data: PartitionData) -> int:
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._reset(key, partition)
            return 0
        if data.error_code != ErrorCode.NONE:
            self._refused(key, partition, ErrorCode(data.error_code))
            return 0
        diverging = data.diverging_epoch
        if diverging.end_offset != UNDEFINED:
            truncate_by(partition, EpochEnd(diverging.epoch, diverging.end_offset), data.log_start_offset)
            self._refetch(key)  # the high watermark in the answer may not apply to this log yet
            return 0
        return self._append(key, partition, data)

    def _append(self, key: Key, partition: Partition, data: PartitionData) -> int:
        size_bytes = 0
        restart_after_leader_deletion(partition, data.log_start_offset)
        if data.records:
            size_bytes = append_fetched(partition, memoryview(data.records), self._clock.now_ms())
            self._counters.bytes_in += size_bytes
            self._to_send.add(key)
            self._maybe_throttle(key, partition, size_bytes)
        partition.follow_high_watermark(data.high_watermark)
        if partition.follow_log_start(data.log_start_offset):
            self._to_send.add(key)
        self._maybe_await_flush(key, partition)
        self._failures.pop(key, None)
        return size_bytes

    def _maybe_await_flush(self, key: Key, partition: Partition) -> None:
        """Wait for the flush: the next fetch offset tells the leader that everything below it is durable here."""
        if partition.ready_offset < partition.log_end_offset:
            self._unflushed.add(key)
            partition.on_flushed = self._maybe_send

    def _maybe_throttle(self, key: Key, partition: Partition, size_bytes: int) -> None:
        """Pause a throttled replica that has used its share, unless it is in sync, because producers wait for those."""
        if not self._is_throttled(partition):
            return
        self._throttle.take(size_bytes)
        if self._throttle.wait_ms():
            self._stop_asking(key)
            self._held_back[key] = partition
            self._schedule_throttle_check()

    def _is_throttled(self, partition: Partition) -> bool:
        return partition.throttled.fetching and self._broker_id not in partition.leadership.isr

    def _schedule_throttle_check(self) -> None:
        """Check the throttle again later. Only the newest timer counts, because the older ones are outdated."""
        number = self._throttle_timer = self._throttle_timer + 1
        delay_s = self._throttle.wait_ms() / 1000
        self._links.call_later(delay_s, lambda: self.check_throttle() if number == self._throttle_timer else None)

    def check_throttle(self) -> None:
        """Resume partitions that the throttle no longer holds back: the rate allows it, or the throttle has changed."""
        must_wait = self._throttle.wait_ms() > 0
        resumed = [
            (key, partition)
            for key, partition in self._held_back.items()
            if not must_wait or not self._is_throttled(partition)
        ]
        for key, partition in resumed:
            del self._held_back[key]
            self._resume(key, partition)
        if self._held_back:
            self._schedule_throttle_check()

    # -- failures

    def _refused(self, key: Key, partition: Partition, error: ErrorCode) -> None:
        """Pause the partition. Usually one of the two brokers does not know of a new leader yet."""
        _log.debug("%s: broker %d rejected the fetch: %s", partition.topic_partition, self._leader_id, error.name)
        self._pause(key)

    def _pause(self, key: Key) -> None:
        partition = self._partitions[key]
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self._stop_asking(key)
        self._links.call_later(self._pause_ms(failures) / 1000, lambda: self._resume(key, partition))

    def _pause_ms(self, failures: int) -> int:
        return min(FIRST_PAUSE_MS << min(failures, 16), self._limits.backoff_ms)

    def _stop_asking(self, key: Key) -> None:
        self._paused.add(key)
        self._to_send.discard(key)
        self._to_forget.add(key)

    def _resume(self, key: Key, partition: Partition) -> None:
        if key not in self._paused or self._partitions.get(key) is not partition:
            return
        if partition.lacks_room:  # the log is not durable yet, and a fetch would claim that it is
            self._pause(key)
        else:
            self.add(partition)

    def _reset(self, key: Key, partition: Partition) -> None:
        """Align the log with the leader's start and end offsets, because the leader has no record at this log's end."""
        epoch = partition.leadership.leader_epoch
        self._stop_asking(key)

        def done(error: Exception | None) -> None:
            if self._is_stopped or self._partitions.get(key) is not partition:
                return
            if partition.leadership.leader_epoch != epoch or error is None:
                self._resume(key, partition)
            else:
                _log.error("%s: the log could not be aligned with the leader's: %s", partition.topic_partition, error)
                self._pause(key)

        OffsetReset(partition, self._broker_id, self._link, done).start()


_SESSION_IS_GONE = {ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH}


def _key(partition: Partition) -> Key:
    return partition.topic_id, partition.topic_partition.partition


def _fetch_data_of(partition: Partition) -> PartitionFetchData:
    return PartitionFetchData(
        partition.leadership.leader_epoch, partition.log_end_offset, partition.last_epoch(), partition.log_start_offset
    )
