"""What must hold in every run, checked as things happen. Each check has a name, which a violation carries.

`History` sees the cluster from above: who led which epoch, who voted for whom, what is committed. It knows more than
any node and is never asked by one.
"""

from bisect import bisect_left
from collections.abc import Iterable
from zlib import crc32

from raft_disk import LogContent, SimulatedDisk

from sskafka.raft.log_view import RaftBatch


class InvariantError(AssertionError):
    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"{name}: {detail}")
        self.name = name


def require(holds: bool, name: str, detail: str) -> None:
    if not holds:
        raise InvariantError(name, detail)


def next_state(state: int, batch: RaftBatch) -> int:
    """The state machine of the simulation: a checksum of everything applied, in order."""
    return crc32(b"%d %b" % (batch.epoch, batch.data), state)


class History:
    def __init__(self, majority: int) -> None:
        self.majority = majority
        self.leaders: dict[int, int] = {}
        self.votes: dict[tuple[int, int], int] = {}
        self.told_epochs: dict[int, int] = {}
        self.batches: dict[tuple[int, int], RaftBatch] = {}
        self.committed: list[RaftBatch] = []
        self.committed_in: dict[int, int] = {}
        self.states: dict[int, int] = {0: 0}
        self.acknowledged: list[RaftBatch] = []

    # --- elections ------------------------------------------------------------------------------

    def led(self, node_id: int, epoch: int) -> None:
        other = self.leaders.setdefault(epoch, node_id)
        require(other == node_id, "single leader per epoch", f"{other} and {node_id} lead epoch {epoch}")

    def voted(self, node_id: int, epoch: int, candidate_id: int) -> None:
        other = self.votes.setdefault((node_id, epoch), candidate_id)
        require(
            other == candidate_id, "one vote per epoch", f"{node_id} voted for {other} and {candidate_id} in {epoch}"
        )

    def told_epoch(self, node_id: int, epoch: int) -> None:
        """A node let others know its epoch; restarts included, it never falls back."""
        known = self.told_epochs.get(node_id, 0)
        require(epoch >= known, "monotonic epoch", f"{node_id} went from epoch {known} back to {epoch}")
        self.told_epochs[node_id] = epoch

    # --- the log ----------------------------------------------------------------------------------

    def appended(self, batch: RaftBatch) -> None:
        other = self.batches.setdefault((batch.base_offset, batch.epoch), batch)
        require(other == batch, "an offset in an epoch names one batch", f"{other} and {batch}")

    def leader_elected(self, node_id: int, epoch: int, log: LogContent) -> None:
        """It has all that leaders of older epochs committed; a late winner of an old epoch may lack newer records."""
        self.led(node_id, epoch)
        older = (batch for batch in reversed(self.committed) if self.committed_in[batch.base_offset] < epoch)
        last = next(older, None)
        holds = last is None or log.holds(last)
        require(holds, "leader completeness", f"{node_id} leads epoch {epoch} without {last}")

    def high_watermark_moved(
        self, node_id: int, epoch: int, batches: Iterable[RaftBatch], disks: list[SimulatedDisk]
    ) -> None:
        """Batches that a node now takes for committed: all agree on them, and a majority has them on disk."""
        for batch in batches:
            index = bisect_left(self.committed, batch.base_offset, key=lambda known: known.base_offset)
            if index < len(self.committed):
                same = self.committed[index] == batch
                require(same, "committed records never change", f"{self.committed[index]} is {batch} on {node_id}")
            else:
                self.committed_in[batch.base_offset] = epoch
                self._commit(batch, disks)

    def _commit(self, batch: RaftBatch, disks: list[SimulatedDisk]) -> None:
        end_offset = self.committed[-1].end_offset if self.committed else 0
        require(batch.base_offset == end_offset, "committed records have no gaps", f"{batch} after {end_offset}")
        self.committed.append(batch)
        self.states[batch.end_offset] = next_state(self.states[end_offset], batch)
        self.majority_holds_committed(disks)

    def majority_holds_committed(self, disks: list[SimulatedDisk]) -> None:
        if not self.committed:
            return
        holders = sum(disk.once_held(self.committed[-1]) for disk in disks)
        require(holders >= self.majority, "a majority has what is committed", f"{holders} have {self.committed[-1]}")

    def acknowledge(self, batch: RaftBatch) -> None:
        index = bisect_left(self.committed, batch.base_offset, key=lambda known: known.base_offset)
        survives = index < len(self.committed) and self.committed[index] == batch
        require(survives, "acknowledged records survive", f"{batch} was acknowledged and is not committed")
        self.acknowledged.append(batch)

    def applied(self, node_id: int, offset: int, state: int) -> None:
        expected = self.states.get(offset)
        require(state == expected, "state machines agree", f"{node_id} at {offset}: {state} instead of {expected}")
