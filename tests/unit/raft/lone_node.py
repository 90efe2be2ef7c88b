"""A single node with a log in memory: tests supply the messages of the other nodes and check the resulting `Ready`."""

from memory_log import MemoryLog

from sskafka.model.errors import ErrorCode
from sskafka.raft.election_state import ElectionState
from sskafka.raft.log_view import OffsetAndEpoch, RaftBatch
from sskafka.raft.messages import BeginQuorumEpochRequest, FetchRequest, Request, Response, VoteResponse
from sskafka.raft.node import RaftNode, RequestFailed, RequestReceived, ResponseReceived
from sskafka.raft.ready import FollowerAppend, Ready
from sskafka.raft.timing import Timing
from sskafka.raft.voters import VoterSet


class LoneNode:
    """Node 1 of voters 1, 2, 3 by default. Storage requests are executed; messages stay in the last `Ready`."""

    def __init__(
        self,
        log: MemoryLog | None = None,
        stored: ElectionState | None = None,
        node_id: int = 1,
        voters: tuple[int, ...] = (1, 2, 3),
        timing: Timing | None = None,
        flushes: bool = True,
    ) -> None:
        self.log = log or MemoryLog()
        self.now_ms = 0
        self.flushes = flushes
        self.stored = stored or ElectionState()
        self.node = RaftNode(node_id, VoterSet.of(voters), self.log, self.stored, 0, lambda below: 0, timing)
        self.ready = self.carry_out(self.node.tick(0))

    def carry_out(self, ready: Ready) -> Ready:
        self.ready = ready
        self.stored = ready.quorum_state or self.stored
        if ready.truncate_to is not None:
            self.log.truncate(ready.truncate_to)
        if ready.installed_snapshot is not None:
            self.log.restart(ready.installed_snapshot, b"snapshot")
        match ready.append:
            case FollowerAppend(batches):
                self.log.batches.extend(batches)
            case None:
                pass
            case append:
                self.log.batches.append(RaftBatch(append.base_offset, append.end_offset, append.epoch, b"own"))
        if ready.flush is not None and self.flushes:
            after = self.node.flushed(ready.flush, self.now_ms)
            ready.requests += after.requests
            ready.answers += after.answers
            ready.high_watermark = after.high_watermark or ready.high_watermark
        return ready

    def ask(self, request: Request) -> Response | None:
        """Return the response, or None while it is held back."""
        ready = self.carry_out(self.node.receive(RequestReceived(request, "client"), self.now_ms))
        return next((answer.response for answer in ready.answers if answer.reply_to == "client"), None)

    def answer(self, response: Response, source: int = 2) -> Ready:
        """Deliver a response to the last request that was sent to `source`."""
        request = next(send.request for send in self.ready.requests if send.to == source)
        return self.carry_out(self.node.receive(ResponseReceived(source, request, response), self.now_ms))

    def fail(self, source: int) -> Ready:
        request = next(send.request for send in self.ready.requests if send.to == source)
        return self.carry_out(self.node.receive(RequestFailed(source, request), self.now_ms))

    def at(self, now_ms: int) -> Ready:
        self.now_ms = now_ms
        return self.carry_out(self.node.tick(now_ms))

    def propose(self, data: bytes = b"record") -> Ready:
        return self.carry_out(self.node.propose(data, 1, self.node.epoch, self.now_ms))

    def sent_to(self, node_id: int) -> Request | None:
        return next((send.request for send in self.ready.requests if send.to == node_id), None)


def follower(leader_id: int = 2, epoch: int = 1, log: MemoryLog | None = None) -> LoneNode:
    lone = LoneNode(log)
    lone.ask(BeginQuorumEpochRequest(leader_id, epoch))
    return lone


def candidate(log: MemoryLog | None = None, flushes: bool = True) -> LoneNode:
    lone = LoneNode(log, flushes=flushes)
    lone.at(1000)
    lone.answer(VoteResponse(ErrorCode.NONE, -1, lone.node.epoch, vote_granted=True))
    return lone


def leader(log: MemoryLog | None = None, flushes: bool = True) -> LoneNode:
    lone = candidate(log, flushes)
    lone.answer(VoteResponse(ErrorCode.NONE, -1, lone.node.epoch, vote_granted=True))
    return lone


def fetch(
    lone: LoneNode, offset: int, last_epoch: int, replica_id: int = 2, high_watermark: int = 0, epoch: int | None = None
) -> FetchRequest:
    epoch = lone.node.epoch if epoch is None else epoch
    return FetchRequest(replica_id, epoch, offset, last_epoch, high_watermark, max_wait_ms=500, max_bytes=100)


def ends(offset: int, epoch: int) -> OffsetAndEpoch:
    return OffsetAndEpoch(offset, epoch)
