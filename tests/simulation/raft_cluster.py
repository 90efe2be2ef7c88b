"""A quorum in one process: simulated clock, network and disks, driven by one seed.

Everything that happens is an event in a heap, ordered by time and then by the order of its making, so a seed replays
exactly. The network delays, reorders, loses and duplicates messages and can be cut, also in one direction only.
"""

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from raft_disk import SimulatedDisk
from raft_invariants import History
from raft_member import Member, NodeDiedError

from sskafka.raft.messages import FetchRequest, FetchSnapshotRequest, PeerRequest, Request, Response
from sskafka.raft.node import Event, PeerDown, RequestFailed, RequestReceived, ResponseReceived
from sskafka.raft.ready import FlushPoint, Ready, Send
from sskafka.raft.roles import Leader
from sskafka.raft.timing import Timing
from sskafka.raft.voters import VoterSet

TRACE_LINES_KEPT = 300


@dataclass(frozen=True, slots=True)
class Weather:
    """How unkind the network and the disks are."""

    delay_ms: int = 5
    slow_percent: int = 0
    slow_delay_ms: int = 400
    loss_percent: int = 0
    duplicate_percent: int = 0
    flush_ms: int = 8
    fatal_percent: int = 0
    """How often a node dies while it stores a vote, an epoch or a snapshot."""
    silent_percent: int = 30
    """How often a connection fails without a word."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request on its way: enough to bring the answer back to the incarnation that asked."""

    number: int
    source: int
    incarnation: int
    request: Request


class Cluster:
    def __init__(
        self,
        seed: int,
        voters: int,
        observers: int,
        weather: Weather,
        timing: Timing,
        member_class: type[Member] = Member,
    ) -> None:
        self.random = Random(seed)
        self.weather = weather
        self.now_ms = 0
        self.events = 0
        self.voter_ids = tuple(range(1, voters + 1))
        voter_set = VoterSet.of(self.voter_ids)
        self.history = History(voter_set.majority)
        ids = range(1, voters + observers + 1)
        self.members = {node_id: member_class(node_id, voter_set, self, timing) for node_id in ids}
        self.cut: set[tuple[int, int]] = set()
        self.trace: deque[tuple[int, str, object]] = deque(maxlen=TRACE_LINES_KEPT)
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._number = 0
        self._proposed = 0
        self._voter_disks: list[SimulatedDisk] = []

    # --- time ---------------------------------------------------------------------------------------

    def at(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._heap, (self.now_ms + delay_ms, self._number, action))

    def step(self) -> bool:
        if not self._heap:
            return False
        self.now_ms, _, action = heapq.heappop(self._heap)
        self.events += 1
        action()
        return True

    def run_until(self, deadline_ms: int, is_done: Callable[[], bool] = lambda: False) -> bool:
        """Let things happen up to that time; True as soon as `is_done` says so."""
        while not is_done():
            if not self._heap or self._heap[0][0] > deadline_ms:
                self.now_ms = deadline_ms
                return is_done()
            self.step()
        return True

    # --- life and death -----------------------------------------------------------------------------

    def start(self, member: Member) -> None:
        if not member.is_up:
            self.note("start", member.node_id)
            member.start()
            self.act(member, lambda: member.node.tick(self.now_ms))

    def start_all(self) -> None:
        for member in self.members.values():
            self.start(member)

    def crash(self, member: Member) -> None:
        if member.is_up:
            self.note("crash", member.node_id)
            member.crash()
            for other in self.up_members():
                request = other.request_to(member.node_id)
                if request is not None and not self._fails_silently():
                    self._report_failure(other, member.node_id, request)

    def up_members(self) -> list[Member]:
        return [member for member in self.members.values() if member.is_up]

    def leaders(self) -> list[Member]:
        return [member for member in self.up_members() if isinstance(member.node.role, Leader)]

    def act(self, member: Member, event: Callable[[], Ready]) -> None:
        """Hand one event in and carry out what comes of it."""
        try:
            member.carry_out(event())
        except NodeDiedError:
            self.crash(member)
            self.at(self.random.randrange(1 + self.random.randrange(500)), lambda: self.start(member))
            return
        member.check_isolation()
        self.end_shutdown(member)
        if member.is_up:
            self._schedule_tick(member)

    def end_shutdown(self, member: Member) -> None:
        deadline_ms = member.shutdown_deadline_ms
        if member.is_up and deadline_ms is not None and (member.node.is_shut_down or self.now_ms >= deadline_ms):
            self.crash(member)

    def _schedule_tick(self, member: Member) -> None:
        wake_at_ms = member.node.wake_at_ms(self.now_ms)
        if wake_at_ms is None or (member.wake_at_ms is not None and member.wake_at_ms <= wake_at_ms):
            return
        member.wake_at_ms = wake_at_ms
        incarnation = member.incarnation
        self.at(max(0, wake_at_ms - self.now_ms), lambda: self._wake(member, incarnation, wake_at_ms))

    def _wake(self, member: Member, incarnation: int, wake_at_ms: int) -> None:
        if not self._is_same_life(member, incarnation) or member.wake_at_ms != wake_at_ms:
            return
        if self._is_paused(member, lambda: self._wake(member, incarnation, wake_at_ms)):
            return
        member.wake_at_ms = None
        due_ms = member.node.wake_at_ms(self.now_ms)
        if due_ms is not None and due_ms <= self.now_ms:
            self.act(member, lambda: member.node.tick(self.now_ms))
        else:
            self._schedule_tick(member)

    def _is_same_life(self, member: Member, incarnation: int) -> bool:
        return member.is_up and member.incarnation == incarnation

    def _is_paused(self, member: Member, retry: Callable[[], None]) -> bool:
        """A stopped process finds everything that happened meanwhile when it goes on."""
        if member.paused_until_ms > self.now_ms:
            self.at(member.paused_until_ms - self.now_ms, retry)
            return True
        return False

    def receive(self, member: Member, event: Event, incarnation: int | None = None) -> None:
        if not member.is_up or incarnation not in {None, member.incarnation}:
            return
        if self._is_paused(member, lambda: self.receive(member, event, incarnation)):
            return
        self.note(f"-> {member.node_id}", event)
        if isinstance(event, RequestReceived) and isinstance(event.request, FetchRequest | FetchSnapshotRequest):
            member.hears_fetch(event.request)
        self.act(member, lambda: member.node.receive(event, self.now_ms))

    # --- the network --------------------------------------------------------------------------------

    def send(self, member: Member, send: Send) -> None:
        self._number += 1
        call = Call(self._number, member.node_id, member.incarnation, send.request)
        target = self.members[send.to]
        delivered = self._transmit(
            member.node_id, send.to, lambda: self.receive(target, RequestReceived(send.request, call)), target
        )
        if not delivered and not self._fails_silently():
            self._report_failure(member, send.to, send.request)

    def _fails_silently(self) -> bool:
        return self.random.randrange(100) < self.weather.silent_percent

    def _report_failure(self, member: Member, node_id: int, request: PeerRequest) -> None:
        """Connections that fail are mostly noticed, some only by their silence."""
        incarnation = member.incarnation
        failure = RequestFailed(node_id, request)
        self.at(1 + self.random.randrange(30), lambda: self.receive(member, failure, incarnation))
        is_cut = not self.cut.isdisjoint({(member.node_id, node_id), (node_id, member.node_id)})
        if not self.members[node_id].is_up and not is_cut:
            self.hint(member, node_id, 1 + self.random.randrange(30))

    def hint(self, member: Member, node_id: int, delay_ms: int = 0) -> None:
        """Tell a member that a node is down. By the time that it hears so the node may be up again."""
        incarnation = member.incarnation
        self.at(delay_ms, lambda: self.receive(member, PeerDown(node_id), incarnation))

    def answer(self, member: Member, reply_to: object, response: Response) -> None:
        if not isinstance(reply_to, Call):
            return
        sender = self.members[reply_to.source]
        event = ResponseReceived(member.node_id, reply_to.request, response)
        delivery = lambda: self.receive(sender, event, reply_to.incarnation)  # noqa: E731
        if not self._transmit(member.node_id, reply_to.source, delivery, sender) and sender.is_up:
            self._report_failure(sender, member.node_id, reply_to.request)

    def _transmit(self, source: int, target: int, delivery: Callable[[], None], receiver: Member) -> bool:
        weather, random = self.weather, self.random
        if (source, target) in self.cut or not receiver.is_up or random.randrange(100) < weather.loss_percent:
            return False
        self.at(self._delay(), delivery)
        if random.randrange(100) < weather.duplicate_percent:
            self.at(self._delay(), delivery)
        return True

    def _delay(self) -> int:
        weather, random = self.weather, self.random
        is_slow = random.randrange(100) < weather.slow_percent
        return 1 + random.randrange(weather.slow_delay_ms if is_slow else weather.delay_ms)

    # --- the disks ------------------------------------------------------------------------------------

    def start_flush(self, member: Member, point: FlushPoint, mark: int) -> None:
        incarnation = member.incarnation
        delay_ms = 1 + self.random.randrange(self.weather.flush_ms)
        self.at(delay_ms, lambda: self._flush_done(member, point, mark, incarnation))

    def _flush_done(self, member: Member, point: FlushPoint, mark: int, incarnation: int) -> None:
        if not self._is_same_life(member, incarnation):
            return
        if self._is_paused(member, lambda: self._flush_done(member, point, mark, incarnation)):
            return
        member.disk.sync_up_to(mark)
        self.check_durable()
        self.note("flushed", (member.node_id, point))
        self.act(member, lambda: member.node.flushed(point, self.now_ms))

    def disks_of_voters(self) -> list[SimulatedDisk]:
        if not self._voter_disks:
            self._voter_disks = [self.members[node_id].disk for node_id in self.voter_ids]
        return self._voter_disks

    def check_durable(self) -> None:
        self.history.majority_holds_committed(self.disks_of_voters())

    # --- clients ----------------------------------------------------------------------------------------

    def propose(self) -> None:
        """To a node that takes itself for the leader; several may."""
        leaders = [member for member in self.leaders() if member.paused_until_ms <= self.now_ms]
        if leaders:
            member = leaders[self.random.randrange(len(leaders))]
            self._proposed += 1
            data = b"record %d" % self._proposed
            record_count = 1 + self.random.randrange(3)
            self.act(member, lambda: member.propose(data, record_count))

    # --- for people ---------------------------------------------------------------------------------------

    def note(self, what: str, detail: object) -> None:
        self.trace.append((self.now_ms, what, detail))

    def describe_trace(self) -> str:
        return "\n".join(f"{at_ms:>7} {what} {detail}" for at_ms, what, detail in self.trace)
