"""The controller of a cluster whose metadata quorum is this node alone.

    submit(decide) -> waiting -> one round: every waiting decision, in order, each seeing what the ones before it did
                             -> one append -> one sync -> the draft becomes the image -> listeners -> answers

Nobody sees a change, nor gets its answer, before it is on disk: `image` is a finished one, only decisions see drafts.
A full disk refuses a round and the controller goes on; a failed sync ends it, because what is on disk is not known.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any, NamedTuple, TypeVar

from sskafka.metadata.decision import Decision
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.record_codec import encode_record
from sskafka.metadata.records import AbortTransactionRecord, MetadataRecord
from sskafka.metadata.transactions import Replayer
from sskafka.model.clock import Clock
from sskafka.model.settings import Settings
from sskafka.quorum.bootstrap import bootstrap_records
from sskafka.quorum.control_batches import QuorumSetup, control_batch, leader_change
from sskafka.quorum.metadata_log import MetadataError, load_metadata
from sskafka.quorum.quorum_state import QuorumState, read_quorum_state, write_quorum_state
from sskafka.records.builder import NewRecord, build_batch
from sskafka.storage.errors import LogDirectoryError, StorageError
from sskafka.storage.log import Log

_log = logging.getLogger(__name__)

R = TypeVar("R")
Decide = Callable[[ClusterImage], Decision[R]]
Listener = Callable[[MetadataDelta, ClusterImage], None]


class ControllerStoppedError(Exception):
    """Asked too late: the node is shutting down."""


class _Waiting(NamedTuple):
    decide: Decide[Any]
    answer: "asyncio.Future[Any]"


class LocalController:
    def __init__(self, log: Log, settings: Settings, clock: Clock, executor: Executor | None = None) -> None:
        """`log` is the metadata log, opened; `executor` runs syncs (the loop's own when None)."""
        self.image = ClusterImage()
        self.leader_epoch = 0
        self._node_id: int = settings["node.id"]
        self._log = log
        self._settings = settings
        self._clock = clock
        self._executor = executor
        self._listeners: list[Listener] = []
        self._waiting: list[_Waiting] = []
        self._work = asyncio.Event()
        self._deciding: list[_Waiting] = []
        self._ended: Exception | None = None
        self._is_stopping = False

    @property
    def controller_id(self) -> int:
        return self._node_id

    async def start(self) -> None:
        """Loads the metadata and becomes leader of a new epoch. Raises MetadataError when the log cannot be used."""
        disk = self._log.log_directory.disk
        loaded = load_metadata(disk, self._log)
        self._refuse_other_voters(loaded.setup)
        self.image = loaded.image
        self._begin_epoch(loaded.setup)
        records: list[MetadataRecord] = []
        if loaded.in_transaction:
            records.append(AbortTransactionRecord("the controller stopped in the middle of it"))
        if not self.image.features:
            records += bootstrap_records(disk, os.path.dirname(self._log.directory), self._settings)
        opening = control_batch(leader_change(self._node_id, loaded.setup), now_ms=self._clock.now_ms())
        await self._write_first(opening, records)

    def subscribe(self, listener: Listener) -> None:
        """`listener` is called at once with everything there is, then after every change, before it is answered."""
        self._listeners.append(listener)
        listener(MetadataDelta.of_everything(self.image), self.image)

    async def submit(self, decide: Decide[R]) -> R:
        """The decision's response, once its records are durable and replayed. Raises what `decide` raised."""
        if self._ended is not None:
            raise self._ended
        answer: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(decide, answer))
        self._work.set()
        return await answer

    async def run(self) -> None:
        """Works until `stop`; belongs into the broker's task group, whose other tasks end when this one fails."""
        ended: Exception = ControllerStoppedError("the controller has stopped")
        try:
            while self._waiting or not self._is_stopping:
                if not self._waiting:
                    await self._work.wait()
                    self._work.clear()
                self._deciding, self._waiting = self._waiting, []
                await self._run_round(self._deciding)
        except Exception as error:
            ended = error
            raise
        finally:
            self._end(ended)

    def stop(self) -> None:
        """What was submitted before is still done; `run` ends then."""
        self._is_stopping = True
        self._work.set()

    # ---- one round

    async def _run_round(self, waiting: list[_Waiting]) -> None:
        draft, delta = self.image.fork(), MetadataDelta()
        draft.next_offset = self._log.log_end_offset
        batches = bytearray()
        answers: list[tuple[asyncio.Future[Any], Any]] = []
        for decide, answer in waiting:
            try:
                decision = decide(draft)
            except Exception as error:  # a decision that fails is its caller's affair
                _refuse(answer, error)
                continue
            batches += self._replay(decision.records, draft, delta)
            answers.append((answer, decision.response))
        if await self._commit(batches, draft, delta, answers):
            for answer, response in answers:
                if not answer.done():
                    answer.set_result(response)

    def _replay(self, records: Sequence[MetadataRecord], draft: ClusterImage, delta: MetadataDelta) -> bytearray:
        """The batch of one decision: its records are all in the log or none is."""
        if not records:
            return bytearray()
        batch = self._batch(records, draft.metadata_version)
        for record in records:
            draft.replay(record, delta)
        return batch

    def _batch(self, records: Sequence[MetadataRecord], metadata_version: int) -> bytearray:
        now_ms = self._clock.now_ms()
        encoded = (encode_record(record, metadata_version) for record in records)
        return build_batch([NewRecord(value=value, timestamp=now_ms) for value in encoded])

    async def _commit(
        self,
        batches: bytearray,
        draft: ClusterImage,
        delta: MetadataDelta,
        answers: list[tuple["asyncio.Future[Any]", Any]],
    ) -> bool:
        if not batches:
            return True
        try:
            self._log.append_as_leader(batches, self.leader_epoch, self._clock.now_ms(), from_client=False)
        except LogDirectoryError:
            raise
        except StorageError as error:  # a full disk: nothing was written, so nothing has changed
            for answer, _ in answers:
                _refuse(answer, error)
            return False
        await self._sync()
        assert draft.next_offset == self._log.log_end_offset, "offsets in records are those of the log"
        self._publish(draft, delta)
        return True

    async def _sync(self) -> None:
        plan = self._log.plan_flush()
        loop = asyncio.get_running_loop()
        try:
            for file in plan.files:
                await loop.run_in_executor(self._executor, file.sync)
        except OSError as error:
            raise self._log.log_directory.fail(error) from error
        self._log.complete_flush(plan)

    def _publish(self, image: ClusterImage, delta: MetadataDelta) -> None:
        self.image = image
        for listener in self._listeners:
            listener(delta, image)

    def _end(self, reason: Exception) -> None:
        """Nobody is left waiting, and nobody can begin to."""
        self._ended = reason
        waiting, self._waiting = [*self._deciding, *self._waiting], []
        for item in waiting:
            _refuse(item.answer, reason)

    # ---- start

    def _refuse_other_voters(self, setup: QuorumSetup) -> None:
        voters = [voter.voter_id for voter in setup.voters.voters] if setup.voters else []
        voters = voters or [voter.id for voter in self._settings.voters]
        if voters and voters != [self._node_id]:
            raise MetadataError(f"the voters are {voters}; a quorum of more than this node is not supported yet")

    def _begin_epoch(self, setup: QuorumSetup) -> None:
        """An epoch above every one that this voter has heard of; on disk before it is used."""
        disk, directory = self._log.log_directory.disk, self._log.directory
        known = read_quorum_state(disk, directory) or QuorumState()
        self.leader_epoch = max(known.leader_epoch, self._log.epochs.latest_epoch, 0) + 1
        state = QuorumState(self.leader_epoch, self._node_id)
        try:
            write_quorum_state(disk, directory, state, voters=[self._node_id], kraft_version=setup.kraft_version)
        except OSError as error:
            raise self._log.log_directory.write_failed(error) from error

    async def _write_first(self, opening: bytearray, records: list[MetadataRecord]) -> None:
        """The records that open the epoch, and what has to be put right or begun, in one write."""
        now_ms = self._clock.now_ms()
        draft, delta = self.image.fork(), MetadataDelta()
        self._log.append_as_leader(opening, self.leader_epoch, now_ms, from_client=False)
        draft.next_offset = self._log.log_end_offset
        if records:
            batch = self._batch(records, draft.metadata_version)
            self._log.append_as_leader(batch, self.leader_epoch, now_ms, from_client=False)
        replayer = Replayer(draft, delta)
        for record in records:
            replayer.replay(record)
        await self._sync()
        self.image = draft


def _refuse(answer: "asyncio.Future[Any]", error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
