import pytest
from simulated_disk import SimulatedDisk

from sskafka.storage.errors import CorruptFileError
from sskafka.storage.leader_epochs import LeaderEpochs

PATH = "/data/t-0/leader-epoch-checkpoint"


@pytest.fixture
def disk() -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.make_directory("/data/t-0")
    return disk


@pytest.fixture
def epochs(disk: SimulatedDisk) -> LeaderEpochs:
    """1 wrote 0..9, 3 wrote 10..19, 7 writes from 20 on."""
    epochs = LeaderEpochs.load(disk, PATH)
    for epoch, start in ((1, 0), (3, 10), (7, 20)):
        epochs.assign(epoch, start)
    return epochs


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [
        (0, (0, 0)),  # older than all: ends where the first begins
        (1, (1, 10)),
        (2, (1, 10)),
        (3, (3, 20)),
        (6, (3, 20)),
        (7, (7, 33)),  # the newest ends with the log
        (8, (-1, -1)),
        (-1, (-1, -1)),
    ],
)
def test_where_an_epoch_ends(epochs: LeaderEpochs, epoch: int, expected: tuple[int, int]) -> None:
    assert epochs.end_offset_for(epoch, 33) == expected


@pytest.mark.parametrize(("offset", "epoch"), [(0, 1), (9, 1), (10, 3), (19, 3), (20, 7), (500, 7)])
def test_who_wrote_an_offset(epochs: LeaderEpochs, offset: int, epoch: int) -> None:
    assert epochs.epoch_of(offset) == epoch


def test_nothing_is_known_of_an_empty_log(disk: SimulatedDisk) -> None:
    epochs = LeaderEpochs.load(disk, PATH)
    assert epochs.epoch_of(0) == -1
    assert epochs.end_offset_for(0, 5) == (-1, -1)


@pytest.mark.parametrize(
    ("end", "left"), [(0, []), (10, [(1, 0)]), (11, [(1, 0), (3, 10)]), (21, [(1, 0), (3, 10), (7, 20)])]
)
def test_cut_at_the_end(disk: SimulatedDisk, epochs: LeaderEpochs, end: int, left: list[tuple[int, int]]) -> None:
    epochs.truncate_from_end(end)
    assert epochs.entries == left
    assert LeaderEpochs.load(disk, PATH).entries == left


@pytest.mark.parametrize(
    ("start", "left"),
    [
        (0, [(1, 0), (3, 10), (7, 20)]),
        (4, [(1, 4), (3, 10), (7, 20)]),
        (10, [(3, 10), (7, 20)]),
        (25, [(7, 25)]),
    ],
)
def test_cut_at_the_start(disk: SimulatedDisk, epochs: LeaderEpochs, start: int, left: list[tuple[int, int]]) -> None:
    epochs.truncate_from_start(start)
    assert epochs.entries == left
    assert LeaderEpochs.load(disk, PATH).entries == left


def test_a_new_epoch_replaces_what_contradicts_it(epochs: LeaderEpochs) -> None:
    epochs.assign(8, 10)
    assert epochs.entries == [(1, 0), (8, 10)]


def test_an_epoch_is_on_disk_before_it_is_believed(disk: SimulatedDisk, epochs: LeaderEpochs) -> None:
    def full(operation: str, path: str) -> None:
        if operation == "sync":
            raise OSError(28, "full", path)

    disk.fault = full
    with pytest.raises(OSError, match="full"):
        epochs.assign(9, 30)
    assert epochs.latest_epoch == 7


@pytest.mark.parametrize("text", [b"0\n", b"1\n0\n", b"0\n1\n", b"0\n1\n5\n", b"0\n2\n5 0\n4 3\n", b"0\n1\na b\n"])
def test_impossible_files_are_recognised(disk: SimulatedDisk, text: bytes) -> None:
    disk.open(PATH, create=True).write_at(text, 0)
    with pytest.raises(CorruptFileError):
        LeaderEpochs.load(disk, PATH)
