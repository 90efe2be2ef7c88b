"""A disk in memory that can lose power, run full and break.

It keeps what was synced apart from what was only written. `crash` forgets a part of the latter: of each file some of
the newest writes, the last of them perhaps torn, and of each directory the renames and new names since its last sync.
`fault` is asked before every operation and may raise.
"""

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from sskafka.model.buffers import Buffer
from sskafka.storage.disk import DiskEntry, DiskUsage


@dataclass(eq=False)
class Node:
    data: bytearray = field(default_factory=bytearray)
    synced: bytes = b""
    unsynced: list[tuple[int, bytes | None]] = field(default_factory=list)  # position and bytes; None cuts there

    def apply(self, position: int, written: bytes | None) -> None:
        if written is None:
            if position > len(self.data):
                self.data += bytes(position - len(self.data))
            del self.data[position:]
        else:
            self.data += bytes(max(position - len(self.data), 0))
            self.data[position : position + len(written)] = written

    def change(self, position: int, written: bytes | None) -> None:
        self.apply(position, written)
        self.unsynced.append((position, written))

    def sync(self) -> None:
        self.synced = bytes(self.data)
        self.unsynced.clear()

    def crash(self, random: Random) -> None:
        survived = self.unsynced[: random.randint(0, len(self.unsynced))]
        self.data = bytearray(self.synced)
        for position, written in survived[:-1]:
            self.apply(position, written)
        if survived:
            position, written = survived[-1]
            self.apply(position, written and written[: random.randint(0, len(written))])
        self.sync()


class SimulatedFile:
    def __init__(self, disk: "SimulatedDisk", path: str, node: Node) -> None:
        self._disk = disk
        self._path = path
        self._node = node

    def write_at(self, data: Buffer, position: int) -> None:
        self._disk.ask("write", self._path)
        room = self._disk.room_for(self._node, position, len(data))
        self._node.change(position, bytes(data[:room]))
        if room < len(data):
            raise OSError(errno.ENOSPC, "No space left on device", self._path)

    def read_at(self, size: int, position: int) -> bytes:
        self._disk.ask("read", self._path)
        return bytes(self._node.data[position : position + size])

    def read_once(self, size: int, position: int) -> bytes:
        return self.read_at(size, position)

    def read_cached_at(self, size: int, position: int) -> bytes | None:
        return self.read_at(size, position) if self._disk.is_cached else None

    def sync(self) -> None:
        self._disk.ask("sync", self._path)
        self._disk.syncs.append(self._path)
        self._node.sync()

    def truncate(self, size: int) -> None:
        self._disk.ask("truncate", self._path)
        if size != len(self._node.data):
            self._node.change(size, None)

    def preallocate(self, size: int) -> None:
        self._disk.ask("preallocate", self._path)

    def size(self) -> int:
        return len(self._node.data)

    def close(self) -> None:
        pass


class SimulatedLock:
    def __init__(self, locked: set[str], path: str) -> None:
        self._locked = locked
        self._path = path

    def release(self) -> None:
        self._locked.discard(self._path)


class SimulatedDisk:
    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.directories: set[str] = set()
        self.fault: Callable[[str, str], None] | None = None
        self.capacity_bytes: int | None = None
        self.is_cached = True
        self.syncs: list[str] = []
        self._durable: dict[str, Node] = {}
        self._locked: set[str] = set()

    def ask(self, operation: str, path: str) -> None:
        if self.fault is not None:
            self.fault(operation, path)

    def room_for(self, node: Node, position: int, size: int) -> int:
        if self.capacity_bytes is None:
            return size
        others = sum(len(other.data) for other in self.nodes.values() if other is not node)
        return max(min(size, self.capacity_bytes - others - position), 0)

    def crash(self, random: Random) -> None:
        """The power is back: what was neither synced nor lucky is gone."""
        self._locked.clear()
        if random.random() < 0.5:
            self.nodes = dict(self._durable)
        for node in dict.fromkeys(self.nodes.values()):
            node.crash(random)
        self._durable = dict(self.nodes)

    # ---- the Disk protocol

    def open(self, path: str, *, create: bool = False) -> SimulatedFile:
        self.ask("open", path)
        if path not in self.nodes:
            if not create or os.path.dirname(path) not in self.directories:
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
            self.nodes[path] = Node()
        return SimulatedFile(self, path, self.nodes[path])

    def exists(self, path: str) -> bool:
        return path in self.nodes or path in self.directories

    def is_directory(self, path: str) -> bool:
        return path in self.directories

    def entries(self, path: str) -> list[DiskEntry]:
        self.ask("entries", path)
        if path not in self.directories:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        files = [DiskEntry(os.path.basename(p), len(n.data), False) for p, n in self.nodes.items() if _is_in(p, path)]
        return files + [DiskEntry(os.path.basename(p), 0, True) for p in self.directories if _is_in(p, path)]

    def make_directory(self, path: str, *, is_secret: bool = False) -> None:
        self.ask("make_directory", path)
        while path not in {"", "/"}:
            self.directories.add(path)
            path = os.path.dirname(path)

    def rename(self, source: str, target: str) -> None:
        self.ask("rename", source)
        if source in self.directories:
            self._rename_directory(source, target)
        elif source in self.nodes:
            self.nodes[target] = self.nodes.pop(source)
        else:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", source)

    def _rename_directory(self, source: str, target: str) -> None:
        self.directories = {_moved(path, source, target) for path in self.directories}
        self.nodes = {_moved(path, source, target): node for path, node in self.nodes.items()}
        self._durable = {_moved(path, source, target): node for path, node in self._durable.items()}

    def remove(self, path: str) -> None:
        self.ask("remove", path)
        if path not in self.nodes:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        del self.nodes[path]

    def remove_tree(self, path: str) -> None:
        self.ask("remove_tree", path)
        self.directories = {p for p in self.directories if p != path and not p.startswith(path + "/")}
        self.nodes = {p: node for p, node in self.nodes.items() if not p.startswith(path + "/")}

    def sync_directory(self, path: str) -> None:
        self.ask("sync_directory", path)
        elsewhere = {p: node for p, node in self._durable.items() if not _is_in(p, path)}
        self._durable = {**elsewhere, **{p: node for p, node in self.nodes.items() if _is_in(p, path)}}

    def usage(self, path: str) -> DiskUsage:
        used = sum(len(node.data) for node in self.nodes.values())
        total = self.capacity_bytes or 1 << 40
        return DiskUsage(total, total - used)

    def lock(self, path: str) -> SimulatedLock:
        self.ask("lock", path)
        if path in self._locked:
            raise BlockingIOError(errno.EAGAIN, "locked by another process", path)
        self._locked.add(path)
        return SimulatedLock(self._locked, path)


def _is_in(path: str, directory: str) -> bool:
    return os.path.dirname(path) == directory


def _moved(path: str, source: str, target: str) -> str:
    return target + path[len(source) :] if path == source or path.startswith(source + "/") else path
