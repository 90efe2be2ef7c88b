from sskafka.replication.reader_positions import READERS_MAX, ReaderPositions


def test_the_last_position_of_a_reader_counts() -> None:
    positions = ReaderPositions()
    positions.note("a", 5, 1.0)
    positions.note("a", 9, 2.0)
    assert positions == {"a": (9, 2.0)}


def test_who_fetched_longest_ago_makes_room() -> None:
    positions = ReaderPositions()
    for number in range(READERS_MAX):
        positions.note(f"reader-{number}", 0, float(number))
    positions.note("reader-0", 1, 1000.0)
    positions.note("new", 0, 1001.0)
    assert len(positions) == READERS_MAX
    assert {"reader-0", "new"} <= positions.keys()
    assert "reader-1" not in positions
