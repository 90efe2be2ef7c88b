from sskafka.servers.adr.listener import ChosenPartitions, ConsumerSpread


def test_connections_are_spread_and_keep_their_partition() -> None:
    spread = ConsumerSpread()
    connections: list[ChosenPartitions] = [{} for _ in range(5)]
    assert [spread.partition_for("t", 3, chosen) for chosen in connections] == [0, 1, 2, 0, 1]
    assert [spread.partition_for("t", 3, chosen) for chosen in connections] == [0, 1, 2, 0, 1]
    assert spread.partition_for("other", 3, connections[4]) == 0


def test_what_a_closed_connection_had_is_given_to_the_next() -> None:
    spread = ConsumerSpread()
    first: ChosenPartitions = {}
    second: ChosenPartitions = {}
    spread.partition_for("t", 2, first)
    spread.partition_for("t", 2, second)
    spread.release(second)
    assert spread.partition_for("t", 2, {}) == 1
    spread.release(second)
    assert spread.partition_for("t", 2, {}) == 0, "released once"
