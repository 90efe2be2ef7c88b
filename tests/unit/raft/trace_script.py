"""A small quorum that is controlled by commands, one per line, and writes down everything it does.

cluster voters=1,2,3 observers=4    start the nodes; higher ids have longer timeouts, nothing is random
advance 1000                        let time pass; due nodes tick, messages are not delivered
run 1000                            let time pass and deliver all messages; fetches without records are not shown
deliver [1->2]                      deliver messages (of one link) until none is left
drop 1->2 | cut 1 | heal            lose messages in flight | lose all further messages of a node | end the cut
propose 1 text | snapshot 1         on the leader | of all committed records, which are removed from the log
hold 1 | flush 1                    fsyncs of that node do not complete | complete them
crash 1 | restart 1                 records that are not flushed are lost
log 1 1,1,2                         while the node is down: set its log to records of these epochs
down 2 1                            tell node 2 that node 1 is down, whether or not it is
resign 1 | shutdown 1
lab-vote 1 3 7 [behind]             vote for 3 in epoch 7, requested through the lab API
lab-leader 1 3 7                    3 leads epoch 7, reported through the lab API
status                              role, election state and log of every node
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from memory_log import MemoryLog
from trace_text import describe_outcome, describe_request, describe_response, describe_storage

from sskafka.lab.votes import LabLeaderRequest, LabVoteRequest
from sskafka.raft.election_state import ElectionState
from sskafka.raft.log_view import RaftBatch, SnapshotId
from sskafka.raft.messages import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotResponse,
    Request,
)
from sskafka.raft.node import PeerDown, RaftNode, RequestReceived, ResponseReceived
from sskafka.raft.ready import Answer, FlushPoint, FollowerAppend, LogRead, Ready, SnapshotRead
from sskafka.raft.timing import Timing
from sskafka.raft.voters import VoterSet

SNAPSHOT = b"what all committed records come to"


@dataclass(frozen=True, slots=True)
class Message:
    source: int
    target: int
    event: RequestReceived | ResponseReceived
    is_chatter: bool = False


@dataclass(frozen=True, slots=True)
class Caller:
    node_id: int
    request: Request


class Host:
    """A node and its storage."""

    def __init__(self) -> None:
        self.node: RaftNode | None = None
        self.stored = ElectionState()
        self.log = MemoryLog()
        self.flushed_batches: list[RaftBatch] = []
        self.unfinished = bytearray()
        self.holds_flushes = False
        self.flushes: list[FlushPoint] = []


class Script:
    def __init__(self) -> None:
        self.now_ms = 0
        self.hosts: dict[int, Host] = {}
        self.messages: list[Message] = []
        self.cut_off: set[int] = set()
        self.lines: list[str] = []
        self.is_brief = False

    def run(self, command: str) -> list[str]:
        name, *arguments = command.split()
        self.lines = []
        getattr(self, f"do_{name.replace('-', '_')}")(*arguments)
        return self.lines

    def say(self, node_id: int, text: str) -> None:
        self.lines.append(f"{self.now_ms:>6}  {node_id} {text}")

    # --- commands ------------------------------------------------------------------------------------

    def do_cluster(self, voters: str, observers: str = "observers=") -> None:
        self.voters = VoterSet.of(int(text) for text in voters.partition("=")[2].split(","))
        for node_id in (*self.voters.ids, *map(int, filter(None, observers.partition("=")[2].split(",")))):
            self.hosts[node_id] = Host()
            self._start(node_id)

    def do_advance(self, duration_ms: str) -> None:
        self._pass_time(int(duration_ms), lambda: None)

    def do_run(self, duration_ms: str) -> None:
        self.is_brief = True
        self._pass_time(int(duration_ms), self.do_deliver)
        self.is_brief = False

    def do_deliver(self, link: str = "") -> None:
        while message := next((message for message in self.messages if _is_on(link, message)), None):
            self.messages.remove(message)
            self._deliver(message)

    def do_drop(self, link: str = "") -> None:
        self.messages = [message for message in self.messages if not _is_on(link, message)]

    def do_cut(self, node_id: str) -> None:
        self.cut_off.add(int(node_id))

    def do_heal(self) -> None:
        self.cut_off.clear()

    def do_propose(self, node_id: str, text: str) -> None:
        node = self._node(int(node_id))
        self._carry_out(int(node_id), lambda: node.propose(text.encode(), 1, node.epoch, self.now_ms))

    def do_snapshot(self, node_id: str) -> None:
        host = self.hosts[int(node_id)]
        committed = self._node(int(node_id)).high_watermark
        last = next(batch for batch in host.log.batches if batch.end_offset == committed)
        host.log.trim(SnapshotId(committed, last.epoch), SNAPSHOT)
        self.say(int(node_id), f"has snapshot {committed}@{last.epoch}")

    def do_hold(self, node_id: str) -> None:
        self.hosts[int(node_id)].holds_flushes = True

    def do_flush(self, node_id: str) -> None:
        self.hosts[int(node_id)].holds_flushes = False
        self._flush(int(node_id))

    def do_crash(self, node_id: str) -> None:
        host = self.hosts[int(node_id)]
        host.node = None
        host.flushes.clear()
        host.log.batches = list(host.flushed_batches)
        self.messages = [message for message in self.messages if int(node_id) not in {message.source, message.target}]

    def do_restart(self, node_id: str) -> None:
        self._start(int(node_id))

    def do_log(self, node_id: str, epochs: str) -> None:
        batches = [RaftBatch(offset, offset + 1, int(epoch), b"old") for offset, epoch in enumerate(epochs.split(","))]
        host = self.hosts[int(node_id)]
        host.flushed_batches, host.log.batches = batches, list(batches)

    def do_down(self, node_id: str, peer_id: str) -> None:
        event = PeerDown(int(peer_id))
        self._carry_out(int(node_id), lambda: self._node(int(node_id)).receive(event, self.now_ms))

    def do_resign(self, node_id: str) -> None:
        self._carry_out(int(node_id), lambda: self._node(int(node_id)).resign(self.now_ms))

    def do_shutdown(self, node_id: str) -> None:
        self._carry_out(int(node_id), lambda: self._node(int(node_id)).shutdown(self.now_ms))

    def do_lab_vote(self, node_id: str, candidate_id: str, epoch: str, behind: str = "") -> None:
        self._ask_from_lab(int(node_id), LabVoteRequest(int(candidate_id), int(epoch), not behind))

    def do_lab_leader(self, node_id: str, leader_id: str, epoch: str) -> None:
        self._ask_from_lab(int(node_id), LabLeaderRequest(int(leader_id), int(epoch)))

    def _ask_from_lab(self, node_id: int, request: Request) -> None:
        event = RequestReceived(request, Caller(0, request))
        self._carry_out(node_id, lambda: self._node(node_id).receive(event, self.now_ms))

    def do_status(self) -> None:
        for node_id, host in self.hosts.items():
            if host.node is None:
                self.say(node_id, "is down")
                continue
            node, election, log = host.node, host.node.election, host.log
            epochs = ", ".join(f"{batch.base_offset}@{batch.epoch}" for batch in log.batches)
            self.say(
                node_id,
                f"{node.role_name} in epoch {node.epoch}, leader {election.leader_id}, vote {election.voted_id}"
                f", high watermark {node.high_watermark}, log from {log.start_offset}: [{epochs}]",
            )

    # --- time and messages -----------------------------------------------------------------------------

    def _pass_time(self, duration_ms: int, between: Callable[[], None]) -> None:
        end_ms = self.now_ms + duration_ms
        between()
        while (due := self._next_due()) is not None and due[0] <= end_ms:
            self.now_ms = max(self.now_ms, due[0])
            node = self._node(due[1])
            self._carry_out(due[1], lambda node=node: node.tick(self.now_ms))
            between()
        self.now_ms = end_ms

    def _next_due(self) -> tuple[int, int] | None:
        due = [(host.node.wake_at_ms(self.now_ms), node_id) for node_id, host in self.hosts.items() if host.node]
        return min(((at_ms, node_id) for at_ms, node_id in due if at_ms is not None), default=None)

    def _deliver(self, message: Message) -> None:
        lost = {message.source, message.target} & self.cut_off or self.hosts[message.target].node is None
        if not lost:
            node = self._node(message.target)
            self._carry_out(message.target, lambda: node.receive(message.event, self.now_ms))

    def _node(self, node_id: int) -> RaftNode:
        node = self.hosts[node_id].node
        assert node is not None, f"node {node_id} is down"
        return node

    # --- the driver ------------------------------------------------------------------------------------

    def _start(self, node_id: int) -> None:
        host = self.hosts[node_id]
        timing = Timing(fetch_max_bytes=1000, fetch_snapshot_max_bytes=20)
        waits_longer = lambda below: (node_id - 1) * 100 % below  # noqa: E731
        host.node = RaftNode(node_id, self.voters, host.log, host.stored, self.now_ms, waits_longer, timing)
        self._carry_out(node_id, lambda: host.node.tick(self.now_ms))

    def _carry_out(self, node_id: int, event: Callable[[], Ready]) -> None:
        role_name = self._node(node_id).role_name
        ready = event()
        if self._node(node_id).role_name != role_name:
            self.say(node_id, f"becomes {self._node(node_id).role_name}")
        for line in describe_storage(ready):
            self.say(node_id, line)
        self._store(node_id, ready)
        for answer in ready.answers:
            self._answer(node_id, answer)
        for send in ready.requests:
            self._send(Message(node_id, send.to, RequestReceived(send.request, Caller(node_id, send.request))))
        for line in describe_outcome(ready):
            self.say(node_id, line)
        if not self.hosts[node_id].holds_flushes:
            self._flush(node_id)

    def _store(self, node_id: int, ready: Ready) -> None:
        host = self.hosts[node_id]
        host.stored = ready.quorum_state or host.stored
        if ready.snapshot_chunk is not None:
            host.unfinished[ready.snapshot_chunk.position :] = ready.snapshot_chunk.data
        if ready.installed_snapshot is not None:
            host.log.restart(ready.installed_snapshot, bytes(host.unfinished))
        if ready.truncate_to is not None:
            host.log.truncate(ready.truncate_to)
        if ready.append is not None:
            append = ready.append
            is_ours = not isinstance(append, FollowerAppend)
            host.log.batches.extend((_encode(append),) if is_ours else append.batches)
        if ready.flush is not None:
            host.flushes.append(ready.flush)

    def _flush(self, node_id: int) -> None:
        host = self.hosts[node_id]
        while host.flushes:
            point = host.flushes.pop(0)
            host.flushed_batches = [batch for batch in host.log.batches if batch.end_offset <= point.end_offset]
            self._carry_out(node_id, lambda point=point: self._node(node_id).flushed(point, self.now_ms))

    def _answer(self, node_id: int, answer: Answer) -> None:
        caller, response, log = answer.reply_to, answer.response, self.hosts[node_id].log
        match answer.read, response:
            case LogRead(start_offset), FetchResponse():
                batches = tuple(batch for batch in log.batches if batch.base_offset >= start_offset)
                response = replace(response, batches=batches)
            case SnapshotRead(snapshot_id, position, max_bytes), FetchSnapshotResponse():
                content = log.snapshots[snapshot_id]
                response = replace(response, data=content[position : position + max_bytes])
        if caller.node_id == 0:
            self.say(node_id, f"answers {describe_request(caller.request)}: {describe_response(response)}")
        else:
            self._send(Message(node_id, caller.node_id, ResponseReceived(node_id, caller.request, response)))

    def _send(self, message: Message) -> None:
        self.messages.append(message)
        match message.event:
            case RequestReceived(request):
                is_chatter = isinstance(request, FetchRequest)
                line = f"asks {message.target}: {describe_request(request)}"
            case ResponseReceived(_, _, response):
                is_chatter = isinstance(response, FetchResponse) and _is_empty(response)
                line = f"answers {message.target}: {describe_response(response)}"
        if not (is_chatter and self.is_brief):
            self.say(message.source, line)


def _is_empty(response: FetchResponse) -> bool:
    return not (response.error or response.batches or response.diverging or response.snapshot_id)


def _is_on(link: str, message: Message) -> bool:
    return link in {"", f"{message.source}->{message.target}"}


def _encode(append: object) -> RaftBatch:
    data = append.records if isinstance(append.records, bytes) else f"leader {append.records.leader_id}".encode()
    return RaftBatch(append.base_offset, append.end_offset, append.epoch, data)
