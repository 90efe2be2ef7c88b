import pytest
from simulated_disk import SimulatedDisk

from sskafka.storage.errors import CorruptFileError
from sskafka.storage.offset_index import OffsetIndex
from sskafka.storage.time_index import TimeIndex

PATH = "/data/00000000000000000100.index"


@pytest.fixture
def disk() -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.make_directory("/data")
    return disk


@pytest.mark.parametrize("flushed", [0, 1, 700, 1500])
def test_the_last_entry_not_above_is_found(disk: SimulatedDisk, flushed: int) -> None:
    """Whether the entries are in the file, in memory, or in both."""
    index = OffsetIndex(disk, PATH, 100)
    for n in range(1500):
        index.add(10 * n, n)
        if n + 1 == flushed:
            index.flush()
    for n in (0, 1, 255, 256, 257, 699, 700, 701, 1023, 1498, 1499):
        assert index.floor(10 * n) == (10 * n, n)
        assert index.floor(10 * n + 9) == (10 * n, n)
        assert index.position_before(100 + 10 * n + 3) == n
    assert index.floor(-1) is None
    assert index.floor(10**9) == (14990, 1499)
    assert index.count == 1500


def test_entries_survive_in_kafkas_layout(disk: SimulatedDisk) -> None:
    offsets = OffsetIndex(disk, PATH, 100)
    offsets.add(7, 4096)
    offsets.flush()
    assert disk.nodes[PATH].data == bytes.fromhex("00000007 00001000")
    times = TimeIndex(disk, "/data/t", 100)
    times.maybe_add(1_700_000_000_000, 107)
    times.maybe_add(1_700_000_000_000, 108)
    times.maybe_add(1_600_000_000_000, 109)
    times.flush()
    assert disk.nodes["/data/t"].data == bytes.fromhex("0000018bcfe56800 00000007")
    again = TimeIndex(disk, "/data/t", 100, 12)
    assert again.last_entry == (1_700_000_000_000, 107)


def test_a_walk_may_begin_earlier(disk: SimulatedDisk) -> None:
    index = OffsetIndex(disk, PATH, 100)
    for n in range(10):
        index.add(10 * n, n)
    assert index.position_well_before(155, 3) == 2
    assert index.position_well_before(155, 5) == 0
    assert index.position_well_before(155, 6) is None


def test_entries_are_cut_by_position(disk: SimulatedDisk) -> None:
    index = OffsetIndex(disk, PATH, 100)
    for n in range(10):
        index.add(10 * n, 100 * n)
    index.truncate(500)
    assert (index.count, index.last_key, index.last_value) == (5, 40, 400)
    index.add(60, 501)
    index.flush()
    assert OffsetIndex(disk, PATH, 100, len(disk.nodes[PATH].data)).entries()[-2:] == [(40, 400), (60, 501)]


@pytest.mark.parametrize("content", [bytes(7), bytes.fromhex("00000007 00001000 00000003 00002000")])
def test_impossible_files_are_recognised(disk: SimulatedDisk, content: bytes) -> None:
    disk.open(PATH, create=True).write_at(content, 0)
    with pytest.raises(CorruptFileError):
        OffsetIndex(disk, PATH, 100, len(content))


def test_what_could_not_be_written_is_written_later(disk: SimulatedDisk) -> None:
    index = OffsetIndex(disk, PATH, 100)
    for n in range(4):
        index.add(n, n)
    disk.capacity_bytes = 20
    with pytest.raises(OSError, match="No space"):
        index.flush()
    disk.capacity_bytes = None
    assert index.floor(3) == (3, 3)
    index.flush()
    assert index.entries() == [(n, n) for n in range(4)]
