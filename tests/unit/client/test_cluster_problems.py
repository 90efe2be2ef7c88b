"""The problems that `find_problems` derives from the responses of brokers."""

import pytest

from sskafka.client.cluster_status import (
    BrokerStatus,
    DirectoryUsage,
    PartitionHealth,
    Severity,
    find_problems,
    partition_health,
    skew_of,
)
from sskafka.client.metadata import PartitionView, TopicView
from sskafka.client.quorum import QuorumDescription, QuorumMember
from sskafka.model.ids import ZERO_UUID, TopicPartition

NOW_MS = 1_000_000
QUORUM = QuorumDescription(1, 5, 100, tuple(QuorumMember(n, 100, NOW_MS - 100, NOW_MS - 100) for n in (1, 2, 3)), ())


def broker(node_id: int = 1, *, fenced: bool = False, usable: int = 50, failed: bool = False) -> BrokerStatus:
    directories = () if fenced else (DirectoryUsage("/data", 7, 100, usable, failed),)
    return BrokerStatus(
        node_id, f"host-{node_id}:9092", None, fenced, node_id == 1, 1, 1, () if fenced else directories
    )


def topic(name: str, *partitions: tuple[int, list[int], list[int]]) -> TopicView:
    views = {
        number: PartitionView(number, leader, 0, tuple(replicas), tuple(isr), (), 0)
        for number, (leader, replicas, isr) in enumerate(partitions)
    }
    return TopicView(name, ZERO_UUID, False, 0, views)


def test_a_healthy_cluster_has_no_problems() -> None:
    health = partition_health([topic("orders", (1, [1, 2, 3], [1, 2, 3]), (1, [1], [1]))], {"orders": 2})
    assert health == PartitionHealth(1, 2)
    assert list(find_problems([broker(1), broker(2)], QUORUM, health, NOW_MS)) == []


@pytest.mark.parametrize(
    ("partition", "min_isr", "expected"),
    [
        ((-1, [1, 2], [1]), 1, {"offline", "under_replicated"}),
        ((1, [1, 2, 3], [1]), 2, {"under_min_isr", "under_replicated"}),
        ((1, [1, 2, 3], [1, 2]), 2, {"at_min_isr", "under_replicated"}),
        ((1, [1, 2, 3], [1, 2]), 1, {"under_replicated"}),
        ((2, [1, 2], [1, 2]), 1, {"not_preferred"}),
        ((2, [1, 2], [2]), 1, {"under_replicated", "at_min_isr"}),
        ((1, [1], [1]), 1, set()),
    ],
)
def test_partitions_are_sorted_by_what_is_wrong(
    partition: tuple[int, list[int], list[int]], min_isr: int, expected: set[str]
) -> None:
    health = partition_health([topic("orders", partition)], {"orders": min_isr})
    found = {name for name, at in health._asdict().items() if at == (TopicPartition("orders", 0),)}
    assert found == expected


def test_errors_come_first_and_every_problem_has_a_next_step() -> None:
    health = partition_health([topic("orders", *[(-1, [1, 2], [2])] * 5), topic("bills", (2, [1, 2], [1, 2]))], {})
    brokers = [broker(1, usable=5), broker(2, fenced=True), broker(3, failed=True)]
    problems = list(find_problems(brokers, QUORUM, health, NOW_MS))
    assert [problem.severity for problem in problems] == [Severity.ERROR] * 3 + [Severity.WARNING] * 3
    text = "\n".join(problem.text for problem in problems)
    assert "5 partitions (orders-0, orders-1, orders-2 and 2 more) without a leader" in text
    assert "broker 2 (host-2:9092) is fenced" in text
    assert "broker 3 cannot use the log directory /data" in text
    assert "broker 1 has 5% of the disk of /data left" in text
    assert "1 partition (bills-0) not led by the preferred replica" in text
    assert all(problem.next_step for problem in problems)


@pytest.mark.parametrize(
    ("silent", "voters", "severity"), [({2}, 3, Severity.ERROR), ({2}, 5, Severity.WARNING), (set(), 3, None)]
)
def test_voters_that_do_not_fetch(silent: set[int], voters: int, severity: Severity | None) -> None:
    members = [QuorumMember(n, 100, NOW_MS - (60_000 if n in silent else 100), NOW_MS) for n in range(1, voters + 1)]
    quorum = QUORUM._replace(voters=tuple(members))
    problems = list(find_problems([], quorum, PartitionHealth(), NOW_MS))
    assert [problem.severity for problem in problems] == ([] if severity is None else [severity])


def test_the_leader_of_the_quorum_need_not_fetch() -> None:
    quorum = QUORUM._replace(voters=(QuorumMember(1, 100, -1, -1),))
    assert list(find_problems([], quorum, PartitionHealth(), NOW_MS)) == []


def loaded(node_id: int, leaders: int, replicas: int, megabytes: int, *, cordoned: bool = False) -> BrokerStatus:
    usage = DirectoryUsage("/data", megabytes * 1_000_000, 100, 50, False, cordoned)
    return broker(node_id)._replace(leaders=leaders, replicas=replicas, directories=(usage,))


@pytest.mark.parametrize(
    ("loads", "uneven"),
    [
        ([(3, 9, 500), (3, 8, 510), (2, 9, 490)], ()),
        ([(2, 2, 0), (1, 2, 0), (1, 2, 0)], ()),  # one leader more than others cannot be helped
        ([(6, 9, 500), (1, 9, 500), (1, 9, 500)], ("leaders",)),
        ([(3, 12, 0), (3, 6, 0), (3, 6, 0)], ("replicas",)),
        ([(3, 9, 1500), (3, 9, 500), (3, 9, 500)], ("bytes",)),
        ([(6, 12, 1500), (1, 6, 500), (2, 6, 500)], ("bytes", "replicas", "leaders")),
        ([(3, 9, 30), (3, 9, 0), (3, 9, 0)], ()),  # too little to be worth a copy
    ],
)
def test_skew_names_the_goals_that_may_reduce_it(loads: list[tuple[int, int, int]], uneven: tuple[str, ...]) -> None:
    skew = skew_of(loaded(node_id, *load) for node_id, load in enumerate(loads, 1))
    assert skew is not None
    assert skew.uneven == uneven


def test_brokers_that_are_drained_or_fenced_do_not_count_as_skew() -> None:
    brokers = [loaded(1, 3, 9, 5), loaded(2, 3, 9, 5), loaded(3, 0, 9, 5, cordoned=True), broker(4, fenced=True)]
    skew = skew_of(brokers)
    assert skew is not None
    assert (skew.leaders.least, skew.leaders.most) == (3, 3)
    assert skew_of(brokers[1:]) is None
