"""The controller on the quorum's leader: decide -> append -> commit -> publish -> answer.

    submit(decide) -> waiting -> one round a turn of the loop: every waiting decision, in order, each on the draft that
                                 the ones before it left -> one append -> committed -> published -> answered

Only decisions see the newest draft, whose records may not be committed yet. An answer is sent when everything that it
builds on is committed. A new leader waits until its own first record is committed: then it has replayed everything that
earlier leaders committed. A leader that loses its leadership drops its drafts; requests that wait are answered with
NOT_CONTROLLER, and their senders look for the next controller.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import Any, NamedTuple, Protocol, TypeVar

from sskafka.metadata.controller_result import ControllerResult
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.record_codec import encode_record
from sskafka.metadata.records import MetadataRecord
from sskafka.metadata.transactions import Replayer
from sskafka.model.buffers import Buffer
from sskafka.model.counters import Latencies
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.quorum.committed_metadata import CommittedMetadata
from sskafka.raft.errors import NotLeaderError
from sskafka.records.builder import NewRecord, build_batch
from sskafka.runtime.clock import Clock
from sskafka.storage.errors import StorageError

_log = logging.getLogger(__name__)

R = TypeVar("R")
Decide = Callable[[ClusterImage], ControllerResult[R]]


class Proposals(Protocol):
    def propose(self, batches: Buffer, record_count: int, epoch: int) -> int:
        """Append to the log and return the offset after the records."""
        ...


class FirstRecords(NamedTuple):
    """The records that a new leader writes before anything else."""

    control_batch: Buffer | None
    control_count: int
    records: Sequence[MetadataRecord]


class NotControllerError(KafkaError):
    """Another node is the active controller, or there is none yet."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.NOT_CONTROLLER, message)


class _Waiting(NamedTuple):
    decide: Decide[Any]
    answer: "asyncio.Future[Any]"
    since_ns: int


class _Round(NamedTuple):
    """Decisions that share an append, from the append until it is committed."""

    end_offset: int
    image: ClusterImage
    delta: MetadataDelta | None
    """None if the decisions have answers but no records."""
    size_bytes: int
    answers: "list[tuple[asyncio.Future[Any], Any]]"


class ActiveController:
    def __init__(
        self,
        proposals: Proposals,
        committed: CommittedMetadata,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        first_records: Callable[[ClusterImage], FirstRecords],
        *,
        linger_ms: int = 0,
    ) -> None:
        """`linger_ms`: how long decisions are gathered before they are appended together."""
        self._linger_s = linger_ms / 1000
        self._proposals = proposals
        self._committed = committed
        self._clock = clock
        self._loop = loop
        self._first_records = first_records
        self._epoch: int | None = None
        self._draft: ClusterImage | None = None
        self._waiting: list[_Waiting] = []
        self._rounds: deque[_Round] = deque()
        self._is_scheduled = False
        self.queue_times = Latencies()
        """How long decisions waited for their round."""
        self.processing_times = Latencies()
        """How long each decision took, without its commit."""
        self.on_activation: Callable[[], None] | None = None

    @property
    def is_active(self) -> bool:
        return self._draft is not None

    async def submit(self, decide: Decide[R]) -> R:
        """Return the response once the records are committed. Raises NotControllerError, or what `decide` raised."""
        if self._draft is None:
            raise NotControllerError("this node is not the active controller")
        answer: asyncio.Future[R] = self._loop.create_future()
        self._waiting.append(_Waiting(decide, answer, perf_counter_ns()))
        if not self._is_scheduled:
            self._is_scheduled = True
            if self._linger_s:
                self._loop.call_later(self._linger_s, self._run_round)
            else:
                self._loop.call_soon(self._run_round)
        return await answer

    # ---- events of the quorum

    def lead(self, epoch: int) -> bool:
        """Become the active controller: this node leads `epoch`, and has replayed everything up to its first record.

        Return False if the first records could not be written: another node should lead then."""
        self._epoch = epoch
        draft = self._committed.image.fork()
        first = self._first_records(draft)
        try:
            if first.control_batch is not None:
                draft.next_offset = self._proposals.propose(first.control_batch, first.control_count, epoch)
            self._draft = draft
            self._propose_first(first.records)
        except (NotLeaderError, StorageError) as error:
            self.follow(f"it could not write the first records of epoch {epoch}: {error}")
            return False
        _log.info("this node is the active controller of epoch %d", epoch)
        if self.on_activation is not None:
            self.on_activation()
        return True

    def _propose_first(self, records: Sequence[MetadataRecord]) -> None:
        if records:
            answer: asyncio.Future[None] = self._loop.create_future()
            answer.add_done_callback(asyncio.Future.exception)  # no caller waits for this answer
            self._waiting.append(_Waiting(lambda _: ControllerResult(records, None), answer, perf_counter_ns()))
            self._run_round()
            if answer.done():
                answer.result()  # refused at once

    def follow(self, reason: str = "this node no longer leads the quorum") -> None:
        """Drop the drafts: records that are not committed yet may never be."""
        if self._epoch is not None:
            _log.info("no longer the active controller: %s", reason)
        self._epoch = self._draft = None
        waiting, self._waiting = self._waiting, []
        rounds, self._rounds = self._rounds, deque()
        answers = [item.answer for item in waiting] + [answer for item in rounds for answer, _ in item.answers]
        for answer in answers:
            _refuse(answer, NotControllerError(reason))

    def committed(self, high_watermark: int) -> None:
        """Complete the rounds up to the high watermark. A round that is committed in part waits for the rest."""
        while self._rounds and self._rounds[0].end_offset <= high_watermark:
            done = self._rounds.popleft()
            if done.delta is not None:
                self._committed.adopt(done.image, done.delta, done.size_bytes, self._clock.now_ms())
            for answer, response in done.answers:
                if not answer.done():
                    answer.set_result(response)
        if not self._rounds:
            self._committed.advance_to(high_watermark)

    # ---- one round

    def _run_round(self) -> None:
        self._is_scheduled = False
        waiting, self._waiting = self._waiting, []
        if self._draft is None or not waiting:
            return
        draft, delta = self._draft.fork(), MetadataDelta()
        batches, record_count = bytearray(), 0
        answers: list[tuple[asyncio.Future[Any], Any]] = []
        for decide, answer, since_ns in waiting:
            begin_ns = perf_counter_ns()
            self.queue_times.observe(begin_ns - since_ns)
            try:
                decision = decide(draft)
                batch = self._encode(decision.records, draft)
            except Exception as error:  # the caller of the decision receives the error
                _refuse(answer, error)
                continue
            finally:
                self.processing_times.observe(perf_counter_ns() - begin_ns)
            self._replay(decision.records, draft, delta)
            batches += batch
            record_count += len(decision.records)
            answers.append((answer, decision.response))
        self._append(batches, record_count, draft, delta, answers)

    def _encode(self, records: Sequence[MetadataRecord], draft: ClusterImage) -> bytearray:
        """Return the batch of one decision: the log has either all of its records or none."""
        if not records:
            return bytearray()
        now_ms = self._clock.now_ms()
        try:
            encoded = [encode_record(record, draft.metadata_version) for record in records]
            return build_batch([NewRecord(value=value, timestamp=now_ms) for value in encoded])
        except Exception as error:  # boundary of one decision: nothing has been replayed yet
            _log.exception("the records of a decision cannot be encoded")
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the change cannot be stored: {error}") from error

    @staticmethod
    def _replay(records: Sequence[MetadataRecord], draft: ClusterImage, delta: MetadataDelta) -> None:
        end_offset = draft.next_offset + len(records)
        replayer = Replayer(draft, delta)
        for record in records:
            replayer.replay(record)
        draft.next_offset = end_offset

    def _append(
        self,
        batches: bytearray,
        record_count: int,
        draft: ClusterImage,
        delta: MetadataDelta,
        answers: list[tuple["asyncio.Future[Any]", Any]],
    ) -> None:
        assert self._epoch is not None
        if not batches:
            self._answer_after_pending(answers)
            return
        self._rounds.append(_Round(draft.next_offset, draft, delta, len(batches), answers))
        try:
            end_offset = self._proposals.propose(batches, record_count, self._epoch)
        except NotLeaderError as error:
            self.follow(str(error))
            return
        except StorageError as error:  # a full disk: nothing was written, so nothing has changed
            self._rounds.pop()
            _refuse_all(answers, error)
            return
        assert draft.next_offset == end_offset, "offsets in records are those of the log"
        self._draft = draft

    def _answer_after_pending(self, answers: list[tuple["asyncio.Future[Any]", Any]]) -> None:
        assert self._draft is not None
        if self._rounds:
            self._rounds.append(_Round(self._rounds[-1].end_offset, self._draft, None, 0, answers))
            return
        for answer, response in answers:
            if not answer.done():
                answer.set_result(response)


def _refuse_all(answers: list[tuple["asyncio.Future[Any]", Any]], error: Exception) -> None:
    for answer, _ in answers:
        _refuse(answer, error)


def _refuse(answer: "asyncio.Future[Any]", error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
