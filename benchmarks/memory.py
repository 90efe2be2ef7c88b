"""Keep memory for the page cache warm between rounds.

A hypervisor that reclaims a guest's free memory makes its next use slow: writing a gigabyte of log then costs 2-3 CPU
seconds instead of 0.3, at the expense of the broker that happens to write. Between rounds this process therefore holds
as much memory as a round writes, and frees it just before the load starts: the kernel reuses recently freed pages
first.
"""

import mmap

# MADV_POPULATE_WRITE is missing in the mmap module of Python 3.11: populate the whole range for writing.
MADV_POPULATE_WRITE = 23


class WarmPages:
    """Memory that is either held by this process or free for others."""

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
