"""Keeps the page cache's memory warm between rounds.

A hypervisor that takes back a guest's free memory makes the next use of it slow: writing a gigabyte of log then costs
2-3 CPU seconds instead of 0.3, charged to whichever broker happens to write. So between rounds this process holds as
much memory as a round writes, and lets go of it just before the load starts: the kernel hands out the pages freed last.
"""

import mmap

# Not named by the mmap module of Python 3.11: populate the whole range at once, for writing.
MADV_POPULATE_WRITE = 23


class WarmPages:
    """Memory that is either held here or on offer to everybody."""

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes = size_bytes
        self._held: mmap.mmap | None = None

    def hold(self) -> None:
        if self._held is None and self._size_bytes > 0:
            self._held = mmap.mmap(-1, self._size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            self._held.madvise(mmap.MADV_HUGEPAGE)
            self._held.madvise(MADV_POPULATE_WRITE)

    def release(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None
