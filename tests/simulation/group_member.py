"""A simulated member of a classic group: it behaves as clients do, on a network that loses and delays.

    out ──► join ──► sync ──► member (heartbeats, commits) ──► told to rejoin, or forgotten ──► join

Every request may be lost on the way there or back; the member then asks again when its patience ends. Partitions it was
assigned are read from the committed offset on, so what it commits only ever grows.
"""

from collections.abc import Callable
from random import Random
from typing import Protocol

from group_lab import Asked, GroupLab

from sskafka.groups.group import OffsetCommitter
from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.leave_group import MemberIdentity

PARTITIONS = 6
SESSION_MS = 6_000
REBALANCE_MS = 12_000
PATIENCE_MS = 15_000
HEARTBEAT_MS = 1_000


class Witness(Protocol):
    """Checks the responses that members receive."""

    loss: float

    def asked(self, asked: Asked) -> None: ...

    def assigned(self, member: "SimulatedMember", generation: int, share: bytes) -> None: ...

    def committed(self, member: "SimulatedMember", partition: int, offset: int) -> None: ...


class SimulatedMember:
    def __init__(self, name: str, lab: GroupLab, random: Random, witness: Witness, instance_id: str | None) -> None:
        self.name = name
        self.instance_id = instance_id
        self.member_id = ""
        self.generation = -1
        self.positions: dict[int, int] = {}
        self.is_alive = True
        self.is_member = False
        self.dies_when_joined = False
        self._lab = lab
        self._random = random
        self._witness = witness
        self._turn = 0  # what was asked in an earlier turn is no longer waited for
        self._soon(self.join)

    # -- the network

    def _soon(self, call: Callable[[], None], delay_ms: float | None = None) -> None:
        turn = self._turn
        delay_ms = self._random.uniform(1, 200) if delay_ms is None else delay_ms
        self._lab.time.call_later(delay_ms / 1000, lambda: call() if self.is_alive and turn == self._turn else None)

    def _ask(self, send: Callable[[], Asked], heard: Callable[[Asked], None], again: Callable[[], None]) -> None:
        """Send a request over the network; `again` is done when no answer comes."""
        self._turn += 1
        self._soon(again, PATIENCE_MS)
        turn = self._turn

        def arrive() -> None:
            asked = send()
            self._witness.asked(asked)
            self._watch(asked, lambda: heard(asked) if self.is_alive and turn == self._turn else None)

        if self._random.random() >= self._witness.loss:
            is_late = self._random.random() < self._witness.loss
            delay_s = self._random.uniform(2, 12) if is_late else self._random.uniform(0.001, 0.3)
            self._lab.time.call_later(delay_s, arrive)

    def _watch(self, asked: Asked, deliver: Callable[[], None]) -> None:
        def poll() -> None:
            if not asked.is_answered:
                self._lab.time.call_later(0.05, poll)
            elif self._random.random() >= self._witness.loss:
                self._lab.time.call_later(self._random.uniform(0.001, 0.3), deliver)

        poll()

    # -- what a client does

    def join(self) -> None:
        self.is_member = False
        self.positions = {}
        self._ask(self._send_join, self._joined, self.join)

    def _send_join(self) -> Asked:
        return self._lab.join(
            self.member_id,
            instance_id=self.instance_id,
            session_ms=SESSION_MS,
            rebalance_ms=REBALANCE_MS,
            client_id=self.name,
        )

    def _joined(self, asked: Asked) -> None:
        if self.dies_when_joined and asked.code is ErrorCode.NONE:
            self.crash()
            return
        match asked.code:
            case ErrorCode.NONE:
                self.member_id = asked.response.member_id
                self.generation = asked.response.generation_id
                self._sync([member.member_id for member in asked.response.members], asked.response.skip_assignment)
            case ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = asked.response.member_id
                self._again()
            case ErrorCode.FENCED_INSTANCE_ID:
                self.is_alive = False
            case code:
                self._start_over(code)

    def _sync(self, members: list[str], is_skipped: bool) -> None:
        is_leader = bool(members) and not is_skipped
        shares = {name: bytes(range(at, PARTITIONS, len(members))) for at, name in enumerate(sorted(members))}
        generation = self.generation

        def send() -> Asked:
            return self._lab.sync(
                self.member_id, generation, shares if is_leader else None, instance_id=self.instance_id
            )

        self._ask(send, self._synced, lambda: self._sync(members, is_skipped))

    def _synced(self, asked: Asked) -> None:
        if asked.code is not ErrorCode.NONE:
            self._start_over(asked.code)
            return
        share = bytes(asked.response.assignment)
        self._witness.assigned(self, self.generation, share)
        self.is_member = True
        self.positions = {partition: self._lab.committed(partition) or 0 for partition in share}
        self._turn += 1
        self._soon(self._live, HEARTBEAT_MS)

    def _live(self) -> None:
        """Read on, then commit or heartbeat."""
        for partition in self.positions:
            self.positions[partition] += self._random.randint(0, 5)
        if self.positions and self._random.random() < 0.5:
            self._commit(self._random.choice(list(self.positions)))
        else:
            self._ask(self._send_heartbeat, self._alive, self._live)

    def _send_heartbeat(self) -> Asked:
        asked = Asked()
        asked.refuse(self._lab.heartbeat(self.member_id, self.generation, self.instance_id))
        return asked

    def _commit(self, partition: int) -> None:
        offset, committer = (
            self.positions[partition],
            OffsetCommitter(self.member_id, self.instance_id, self.generation),
        )

        def send() -> Asked:
            asked = Asked()
            code = self._lab.commit(offset, committer, partition=partition)
            if code is ErrorCode.NONE:
                self._witness.committed(self, partition, offset)
            asked.refuse(code)
            return asked

        self._ask(send, self._alive, self._live)

    def _alive(self, asked: Asked) -> None:
        if asked.error in {ErrorCode.NONE, None}:
            self._turn += 1
            self._soon(self._live, HEARTBEAT_MS)
        elif asked.error is ErrorCode.FENCED_INSTANCE_ID:
            self.is_alive = False
        else:
            self._start_over(asked.error or ErrorCode.NONE)

    def _start_over(self, code: ErrorCode) -> None:
        if code in {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION} and self.instance_id is None:
            self.member_id = "" if code is ErrorCode.UNKNOWN_MEMBER_ID else self.member_id
        elif code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        self._again()

    def _again(self) -> None:
        self.is_member = False
        self._turn += 1
        self._soon(self.join)

    # -- faults

    def crash(self) -> None:
        self.is_alive = False
        self.is_member = False

    def leave(self) -> None:
        if self.member_id and self.instance_id is None:
            self._lab.leave(MemberIdentity(self.member_id))
        self.crash()
