from consumer_lab import ConsumerLab, LabConsumer
from group_lab import GroupLab

from sskafka.groups.classic_group import ClassicGroup
from sskafka.groups.member_memory import MEMBER_BYTES, RECOUNT_MS, MemberMemory, classic_member_bytes
from sskafka.groups.members import ClassicMember, Client, Protocols
from sskafka.model.errors import ErrorCode

METADATA = (("range", bytes(1000)),)
SIZE = classic_member_bytes(METADATA)


def group(members: int, protocols: Protocols = METADATA) -> ClassicGroup:
    found = ClassicGroup("g", 0)
    for number in range(members):
        found.add_member(ClassicMember(f"m{number}", None, Client("c", "/h"), 10, 10, protocols), "consumer")
    return found


def test_members_fit_up_to_the_bound() -> None:
    memory = MemberMemory(3 * SIZE + 2 * MEMBER_BYTES)
    assert [memory.take(SIZE, [group(count)], now_ms=0) for count in range(4)] == [True, True, True, False]


def test_members_that_are_gone_make_room() -> None:
    memory = MemberMemory(3 * SIZE)
    assert all(memory.take(SIZE, [], now_ms=number * RECOUNT_MS) for number in range(10)), "nobody stayed"


def test_members_are_not_counted_for_every_request() -> None:
    counts: list[int] = []

    class Groups:
        def __iter__(self):  # type: ignore[no-untyped-def]
            counts.append(1)
            return iter([group(3)])

    memory = MemberMemory(3 * SIZE + MEMBER_BYTES)
    taken = [memory.take(SIZE, Groups(), now_ms=100 + now) for now in (*range(50), RECOUNT_MS + 100)]
    assert taken == [True, True, True, *[False] * 48]
    assert len(counts) == 2


def test_names_of_protocols_count() -> None:
    """A member with 10,000 protocols of long names and without metadata was counted as one kilobyte."""
    lab = GroupLab()
    protocols = [(f"{number}" * 30, b"") for number in range(9_000)]
    asked = [lab.join(protocols=protocols, version=3) for _ in range(30)]
    assert asked[-1].code is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_subscriptions_of_consumer_groups_count() -> None:
    lab = ConsumerLab()
    names = [f"{number}" * 20 for number in range(20_000)]
    consumers = [LabConsumer(lab, f"m{number}") for number in range(30)]
    codes = []
    for number, consumer in enumerate(consumers):
        consumer.group_id, consumer.topics = f"g{number}", names
        codes.append(consumer.join().code)
    assert codes[0] is ErrorCode.NONE
    assert codes[-1] is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_topics_that_patterns_match_count() -> None:
    """Each of these patterns took half a megabyte, and was counted as a kilobyte."""
    lab = ConsumerLab()
    lab.set_topics({f"topic-{number}": 1 for number in range(10_000)})
    codes = []
    for number in range(40):
        consumer = LabConsumer(lab, "m", regex=f"topic-.*|{number}")
        consumer.group_id = f"g{number}"
        codes.append(consumer.join().code)
        lab.time.run_for(RECOUNT_MS)
    assert codes[:30] == [ErrorCode.NONE] * 30
    assert codes[-1] is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_patterns_that_match_little_are_not_counted_as_if_they_matched_all() -> None:
    lab = ConsumerLab()
    lab.set_topics({f"topic-{number}": 1 for number in range(10_000)})
    for number in range(60):
        consumer = LabConsumer(lab, "m", regex=f"topic-{number}")
        consumer.group_id = f"g{number}"
        assert consumer.join().code is ErrorCode.NONE
        lab.time.run_for(RECOUNT_MS)


def test_a_refused_member_leaves_nothing_of_its_group_behind() -> None:
    lab = ConsumerLab()
    lab.shard.consumer._take_memory = lambda size, now_ms: False
    for number in range(3):
        consumer = LabConsumer(lab, "m")
        consumer.group_id = f"g{number}"
        assert consumer.join().code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert not lab.shard._memories
