"""One sync of a directory for everybody who created a name in it before that sync began.

If a thousand logs are created together, their names must be synced, but not a thousand times.
"""

import threading

from sskafka.storage.disk import Disk


class SharedSync:
    __slots__ = ("_disk", "_done", "_path", "_syncing", "_tickets")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._tickets = 0
        self._done = 0  # all tickets up to this number are covered by a completed sync
        self._syncing = threading.Lock()

    def ticket(self) -> "Ticket":
        """Return a ticket for the names that exist now."""
        self._tickets += 1
        return Ticket(self, self._tickets)

    def sync_for(self, number: int) -> None:
        """Sync the directory, unless a later sync covers the ticket. May run in any thread."""
        with self._syncing:
            if number > self._done:
                issued = self._tickets
                self._disk.sync_directory(self._path)
                self._done = issued


class Ticket:
    """A ticket as a `Syncable`."""

    __slots__ = ("_number", "_shared")

    def __init__(self, shared: SharedSync, number: int) -> None:
        self._shared = shared
        self._number = number

    def sync(self) -> None:
        self._shared.sync_for(self._number)
