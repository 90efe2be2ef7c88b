import pytest

from sskafka.servers.kafka.handlers.fetch.readers import ReadReplica, nearest_replica

LEADER = ReadReplica(1, "a", 100, 0)
OTHERS = [ReadReplica(2, "b", 90, 0), ReadReplica(3, "b", 95, 10), ReadReplica(4, "c", 100, 0)]


@pytest.mark.parametrize(
    ("rack", "offset", "chosen"),
    [
        ("", 50, None),
        ("a", 50, None),
        ("b", 50, 3),
        ("b", 5, 2),
        ("b", 96, None),
        ("c", 100, 4),
        ("d", 50, None),
    ],
)
def test_the_most_caught_up_replica_in_the_rack_that_has_the_offset(rack: str, offset: int, chosen: int | None) -> None:
    assert nearest_replica(LEADER, OTHERS, rack, offset) == chosen
