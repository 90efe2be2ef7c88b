"""Replace segments with a cleaned segment, and finish a replacement that a crash interrupted.

    1  x.*.cleaned      being written by the cleaner; useless after a crash
    2  x.*.swap         complete and synced; once x.log.swap exists the new segment is valid
    3  the old segments in its range are renamed to .deleted
    4  x.*              the new segment has its final names

The .log file is renamed last in steps 2 and 4, so its name tells that the other files have been renamed. After a crash
in or after step 2 the next start does steps 3 and 4; before step 2 all old segments exist and are kept. These are
Apache Kafka's names and rules, so each system can finish what the other began.

Several new segments are swapped in together if the first one does step 2 last, after a sync of the others' names: while
it is still called .cleaned, a start removes the .swap files after it. Together they must cover the offsets of the old
segments: each begins where the one before ends.
"""

import os
from collections.abc import Sequence

from sskafka.storage.batch_walk import walk_headers
from sskafka.storage.disk import Disk, DiskEntry
from sskafka.storage.segment import LOG_SUFFIX, SUFFIXES, file_stem

SWAP_SUFFIX = ".swap"
CLEANED_SUFFIX = ".cleaned"


def rename_segment(disk: Disk, directory: str, base_offset: int, old_suffix: str, new_suffix: str) -> None:
    """Rename all files of a segment from one ending to another."""
    for suffix in reversed(SUFFIXES):
        path = os.path.join(directory, file_stem(base_offset) + suffix)
        if suffix == LOG_SUFFIX or disk.exists(path + old_suffix):
            disk.rename(path + old_suffix, path + new_suffix)


def offer_swap(disk: Disk, directory: str, base_offsets: Sequence[int]) -> None:
    """Do step 2 for the segments at `base_offsets`, which are in ascending order."""
    for base_offset in reversed(base_offsets[1:]):
        rename_segment(disk, directory, base_offset, CLEANED_SUFFIX, SWAP_SUFFIX)
    if len(base_offsets) > 1:
        disk.sync_directory(directory)
    rename_segment(disk, directory, base_offsets[0], CLEANED_SUFFIX, SWAP_SUFFIX)
    disk.sync_directory(directory)


def remove_cleaned(disk: Disk, directory: str) -> None:
    """Remove the files of a cleaner that did not finish."""
    for entry in disk.entries(directory):
        if entry.name.endswith(CLEANED_SUFFIX):
            disk.remove(os.path.join(directory, entry.name))


def finish_swaps(disk: Disk, directory: str) -> list[DiskEntry]:
    """Finish what a crash interrupted. Return the entries of the directory afterwards."""
    entries = disk.entries(directory)
    names = {entry.name for entry in entries}
    swaps = _base_offsets(names, LOG_SUFFIX + SWAP_SUFFIX)
    if not swaps:
        return entries
    # A group that is still being written never reached step 2.
    unfinished = min(_base_offsets(names, LOG_SUFFIX + CLEANED_SUFFIX), default=None)
    for base_offset in swaps:
        if unfinished is not None and base_offset >= unfinished:
            _remove(disk, directory, names, base_offset, SWAP_SUFFIX)
        else:
            _finish_swap(disk, directory, names, base_offset)
    disk.sync_directory(directory)
    return disk.entries(directory)


def _finish_swap(disk: Disk, directory: str, names: set[str], base_offset: int) -> None:
    end_offset = _end_offset(disk, os.path.join(directory, file_stem(base_offset) + LOG_SUFFIX + SWAP_SUFFIX))
    for old in _base_offsets(names, LOG_SUFFIX):
        if base_offset <= old < max(end_offset, base_offset + 1):
            _remove(disk, directory, names, old, "")
    rename_segment(disk, directory, base_offset, SWAP_SUFFIX, "")


def _remove(disk: Disk, directory: str, names: set[str], base_offset: int, temporary_suffix: str) -> None:
    for suffix in SUFFIXES:
        name = file_stem(base_offset) + suffix + temporary_suffix
        if name in names:
            disk.remove(os.path.join(directory, name))


def _end_offset(disk: Disk, path: str) -> int:
    file = disk.open(path)
    try:
        return max((header.next_offset for _, header in walk_headers(file, 0, file.size())), default=0)
    finally:
        file.close()


def _base_offsets(names: set[str], temporary_suffix: str) -> list[int]:
    stems = [name.removesuffix(temporary_suffix) for name in names if name.endswith(temporary_suffix)]
    return sorted(int(stem) for stem in stems if stem.isdecimal())
