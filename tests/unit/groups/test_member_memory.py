from sskafka.groups.classic_group import ClassicGroup
from sskafka.groups.member_memory import MEMBER_BYTES, RECOUNT_MS, MemberMemory
from sskafka.groups.members import ClassicMember, Client, Protocols

METADATA = (("range", bytes(1000)),)
SIZE = MEMBER_BYTES + 1000


def group(members: int, protocols: Protocols = METADATA) -> ClassicGroup:
    found = ClassicGroup("g", 0)
    for number in range(members):
        found.add_member(ClassicMember(f"m{number}", None, Client("c", "/h"), 10, 10, protocols), "consumer")
    return found


def test_members_fit_up_to_the_bound() -> None:
    memory = MemberMemory(3 * SIZE + MEMBER_BYTES)
    assert [memory.take(METADATA, [group(count)], now_ms=0) for count in range(4)] == [True, True, True, False]


def test_members_that_are_gone_make_room() -> None:
    memory = MemberMemory(3 * SIZE)
    assert all(memory.take(METADATA, [], now_ms=number * RECOUNT_MS) for number in range(10)), "nobody stayed"


def test_members_are_not_counted_for_every_request() -> None:
    counts: list[int] = []

    class Groups:
        def __iter__(self):  # type: ignore[no-untyped-def]
            counts.append(1)
            return iter([group(3)])

    memory = MemberMemory(3 * SIZE)
    taken = [memory.take(METADATA, Groups(), now_ms=100 + now) for now in (*range(50), RECOUNT_MS + 100)]
    assert taken == [True, True, True, *[False] * 48]
    assert len(counts) == 2
