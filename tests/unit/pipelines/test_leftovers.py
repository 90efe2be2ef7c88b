"""Files in a Parquet sink's directory that no list names: which of them are set aside, and when."""

import json
import os
from pathlib import Path

import pytest

from sskafka.pipelines.runner.leftovers import ASIDE, LISTS, Leftovers, listed_names

NAME = "part-{number:05d}-0b5a7d3e-1111-4222-8333-{number:012d}-c000.snappy.parquet"


class Directory:
    """As Spark's file sink fills it; a tick of the clock lies between any two files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ticks = 0

    def write(self, number: int, folder: str = "") -> Path:
        file = self.path / folder / NAME.format(number=number)
        self._make(file, "rows")
        self._make(file.with_name(f".{file.name}.crc"), "sum")
        return file

    def list(self, batch: int, *files: Path, compact: bool = False) -> None:
        lines = [json.dumps({"path": file.as_uri(), "action": "add"}) for file in files]
        self._make(self.path / LISTS / (f"{batch}.compact" if compact else str(batch)), "\n".join(("v1", *lines)))

    def _make(self, file: Path, text: str) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        self._ticks += 1
        os.utime(file, (self._ticks, self._ticks))

    def files(self) -> set[Path]:
        """What readers of Parquet see."""
        return {file for file in self.path.rglob("part-*.parquet") if ASIDE not in file.parts}


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    return Directory(tmp_path)


def test_what_was_cut_off_goes_when_its_batch_is_listed(directory: Directory) -> None:
    first = directory.write(1)
    directory.list(0, first)
    cut_off = [directory.write(2), directory.write(3, "day=1")]
    leftovers = Leftovers(str(directory.path))
    again = directory.write(4)
    assert leftovers.maybe_set_aside() == 0, "another run may list them yet"
    directory.list(1, again)
    assert leftovers.maybe_set_aside() == 2
    assert directory.files() == {first, again}
    assert not any(file.with_name(f".{file.name}.crc").exists() for file in cut_off)
    assert {file.name for file in (directory.path / ASIDE).iterdir()} == {file.name for file in cut_off}


def test_what_a_paused_run_lists_after_all_stays(directory: Directory) -> None:
    (directory.path / LISTS).mkdir()
    os.utime(directory.path / LISTS, (0, 0))
    first, paused = directory.write(1), directory.write(2)
    leftovers = Leftovers(str(directory.path))
    directory.list(0, first, paused)
    assert leftovers.maybe_set_aside() == 0
    assert directory.files() == {first, paused}


def test_what_a_run_left_that_was_killed_twice_goes_too(directory: Directory) -> None:
    directory.list(0, directory.write(1))
    directory.write(2)
    directory.list(1, directory.write(3))  # by a run that was killed before it took the file away
    leftovers = Leftovers(str(directory.path))
    directory.list(2, directory.write(4))
    assert leftovers.maybe_set_aside() == 1


@pytest.mark.parametrize("lists", [0, 1, 20])
def test_what_was_there_before_stays(directory: Directory, lists: int) -> None:
    own = directory.path / "part-by-hand.parquet"
    own.write_text("rows")
    older = directory.write(99)
    (directory.path / LISTS).mkdir()
    for batch in range(lists):
        directory.list(batch, directory.write(batch))
    leftovers = Leftovers(str(directory.path))
    directory.list(lists, directory.write(lists))
    assert leftovers.maybe_set_aside() == 0
    assert {own, older} <= directory.files()


def test_lists_are_merged_now_and_then(directory: Directory) -> None:
    files = [directory.write(number) for number in range(12)]
    for batch in range(9):
        directory.list(batch, files[batch])
    directory.list(9, *files[:10], compact=True)
    directory.list(10, files[10])
    assert listed_names(directory.path) == {file.name for file in files[:11]}


def test_a_directory_that_is_not_there_has_none(tmp_path: Path) -> None:
    assert Leftovers(str(tmp_path / "nowhere")).maybe_set_aside() == 0
    assert Leftovers("s3a://bucket/out").maybe_set_aside() == 0


def test_what_another_sink_or_job_keeps_in_a_directory_below_stays(directory: Directory) -> None:
    directory.list(0, directory.write(1))
    below = Directory(directory.path / "late")
    below._ticks = directory._ticks
    committed = below.write(2)
    below.list(0, committed)
    underway = directory.write(3, "_temporary/0")
    leftovers = Leftovers(str(directory.path))
    directory.list(1, directory.write(4))
    assert leftovers.maybe_set_aside() == 0
    assert committed.exists()
    assert underway.exists()
