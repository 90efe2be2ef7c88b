"""Large assignments of many groups leave time for others; small groups do not wait for them."""

from consumer_lab import ConsumerLab, LabConsumer, settle

from sskafka.groups.assignment_pauses import LARGE_PARTITIONS, PAUSE_FACTOR, AssignmentPauses
from sskafka.model.errors import ErrorCode

CPU_MS = 50


class Cpu:
    """A clock that shows that every assignment takes CPU_MS."""

    def __init__(self) -> None:
        self.looks = 0

    def __call__(self) -> int:
        self.looks += 1
        return self.looks * CPU_MS * 1_000_000


def test_a_large_assignment_is_followed_by_a_pause_for_other_large_ones() -> None:
    pauses = AssignmentPauses(Cpu())
    assert not pauses.is_paused(LARGE_PARTITIONS, 1000)
    with pauses.measured(LARGE_PARTITIONS, 1000):
        pass
    assert pauses.is_paused(LARGE_PARTITIONS, 1000 + PAUSE_FACTOR * CPU_MS - 1)
    assert not pauses.is_paused(LARGE_PARTITIONS - 1, 1000)
    assert not pauses.is_paused(LARGE_PARTITIONS, 1000 + PAUSE_FACTOR * CPU_MS)


def test_a_small_assignment_makes_nobody_wait() -> None:
    pauses = AssignmentPauses(Cpu())
    with pauses.measured(LARGE_PARTITIONS - 1, 1000):
        pass
    assert not pauses.is_paused(LARGE_PARTITIONS, 1000)


def test_other_large_groups_try_again_and_small_ones_do_not_wait() -> None:
    lab = ConsumerLab({"large": LARGE_PARTITIONS, "small": 10})
    lab.shard.consumer._pauses = AssignmentPauses(Cpu())
    first, second = LabConsumer(lab, "a", "large"), LabConsumer(lab, "b", "large")
    small = LabConsumer(lab, "c", "small")
    second.group_id, small.group_id = "group-2", "group-3"
    assert first.join().code is ErrorCode.NONE
    assert second.join().code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert small.join().code is ErrorCode.NONE
    assert [len(consumer.owned) for consumer in (first, second, small)] == [LARGE_PARTITIONS, 0, 10]
    lab.time.run_for(PAUSE_FACTOR * CPU_MS)
    second.join()
    assert len(second.owned) == LARGE_PARTITIONS


def test_a_large_group_waits_for_a_heartbeat_after_the_pause() -> None:
    lab = ConsumerLab({"large": LARGE_PARTITIONS})
    lab.shard.consumer._pauses = AssignmentPauses(Cpu())
    first, second = LabConsumer(lab, "a", "large"), LabConsumer(lab, "b", "large")
    first.join()
    assert second.join().code is ErrorCode.NONE
    first.beat()
    assert len(first.owned) == LARGE_PARTITIONS
    lab.time.run_for(PAUSE_FACTOR * CPU_MS)
    settle(first, second)
    assert [len(first.owned), len(second.owned)] == [LARGE_PARTITIONS // 2] * 2
