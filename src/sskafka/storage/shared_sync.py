"""One sync of a directory for everybody who made a name in it before that sync began.

A thousand logs that are created together need their names on the disk, but not a thousand times.
"""

import threading

from sskafka.storage.disk import Disk


class SharedSync:
    __slots__ = ("_disk", "_done", "_path", "_syncing", "_tickets")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._tickets = 0
        self._done = 0  # every ticket up to this one was given before a sync that is over
        self._syncing = threading.Lock()

    def ticket(self) -> "Ticket":
        """For names that are there already."""
        self._tickets += 1
        return Ticket(self, self._tickets)

    def sync_for(self, number: int) -> None:
        """Any thread may."""
        with self._syncing:
            if number > self._done:
                given = self._tickets
                self._disk.sync_directory(self._path)
                self._done = given


class Ticket:
    """A file to sync, as far as others are concerned."""

    __slots__ = ("_number", "_shared")

    def __init__(self, shared: SharedSync, number: int) -> None:
        self._shared = shared
        self._number = number

    def sync(self) -> None:
        self._shared.sync_for(self._number)
