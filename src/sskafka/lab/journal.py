"""The human-readable journal of topics: `__cluster_metadata.log`, one line per change.

    offset epoch type {json}

    0 1 create-topic {"topic_name":"t","partition_count":1,"partitions":[{"id":"t-1","replica_brokers":["1","2"]}]}
    1 2 delete-topic {"topic_name":"t"}

Offsets are consecutive and belong to the journal. The epoch is that of the quorum leader that wrote the change. The
metadata log is authoritative: the journal contains neither internal topics nor other changes of topics.
Partitions are numbered from 1 here, and nowhere else in this package.
"""

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage, TopicImage
from sskafka.model.ids import INTERNAL_TOPICS

CREATE_TOPIC = "create-topic"
DELETE_TOPIC = "delete-topic"
NOTHING = -1


class JournalEntry(NamedTuple):
    offset: int
    epoch: int
    type: str
    payload: Mapping[str, Any]

    def line(self) -> str:
        return f"{self.offset} {self.epoch} {self.type} {json.dumps(self.payload, separators=(',', ':'))}\n"


def journal_entries(delta: MetadataDelta, image: ClusterImage, epoch: int, next_offset: int) -> Iterator[JournalEntry]:
    """Return the lines that `delta`, which led to `image`, adds to a journal that ends before `next_offset`."""
    for offset, (kind, payload) in enumerate(_changes(delta, image), next_offset):
        yield JournalEntry(offset, epoch, kind, payload)


def parse_line(line: str) -> JournalEntry:
    """Parse one line; raise ValueError if it is incomplete or invalid."""
    if not line.endswith("\n"):
        raise ValueError(f"the line {line!r} is incomplete")
    offset, epoch, kind, payload = line.rstrip("\n").split(" ", 3)
    return JournalEntry(int(offset), int(epoch), kind, json.loads(payload))


def topic_description(topic: TopicImage) -> dict[str, Any]:
    """Return a topic in the format of the lab's listings."""
    partitions = [
        {"id": f"{topic.name}-{number + 1}", "replica_brokers": [str(replica) for replica in sorted(state.replicas)]}
        for number, state in sorted(topic.partitions.items())
    ]
    return {"topic_name": topic.name, "partition_count": len(partitions), "partitions": partitions}


def _changes(delta: MetadataDelta, image: ClusterImage) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield deletions before creations, so that a recreated topic exists at the end; otherwise in log order."""
    for topic in delta.topics_deleted.values():
        if topic.name not in INTERNAL_TOPICS:
            yield DELETE_TOPIC, {"topic_name": topic.name}
    for topic in image.topics_by_id.values():
        if topic.topic_id in delta.topics_created and topic.name not in INTERNAL_TOPICS:
            yield CREATE_TOPIC, topic_description(topic)


class JournalEnd(NamedTuple):
    """The last line; an empty journal ends at offset -1 in epoch -1."""

    offset: int
    epoch: int

    def is_ahead_of(self, offset: int, epoch: int) -> bool:
        """Return whether a log that ends at `offset` in `epoch` lacks entries. Epoch -1 stands for an empty log."""
        if self.epoch == NOTHING:
            return False
        return epoch == NOTHING or (self.epoch, self.offset) > (epoch, offset)


class Journal:
    """Reads the journal for the lab's /kraft/v1 endpoints, whose offsets are its line numbers.

    The broker appends a line when a change is committed (journal_file.py). This side only reads, from where it stopped.
    If the journal became shorter or is another file, it was rewritten and is read again. `path` is None if the broker
    keeps no journal: the journal is empty then."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._file_id = 0
        self._read_bytes = 0
        self._entries: list[JournalEntry] = []

    @property
    def is_kept(self) -> bool:
        return self._path is not None

    def end(self) -> JournalEnd:
        entries = self._current()
        return JournalEnd(entries[-1].offset, entries[-1].epoch) if entries else JournalEnd(NOTHING, NOTHING)

    def after(self, offset: int, count: int) -> list[JournalEntry]:
        """Return at most `count` entries after `offset`."""
        return self._current()[offset + 1 : offset + 1 + count]

    def divergence(self, offset: int, epoch: int) -> JournalEnd | None:
        """Return where a log that ends at `offset` in `epoch` diverges from this journal: the largest epoch up to its
        own that both may share, and the last offset of that epoch here. None if this journal continues that log."""
        entries = self._current()
        if NOTHING in {offset, epoch}:
            return None
        if offset < len(entries) and entries[offset].epoch == epoch:
            return None
        shared = [entry for entry in entries[: offset + 1] if entry.epoch <= epoch]
        return JournalEnd(shared[-1].offset, shared[-1].epoch) if shared else JournalEnd(NOTHING, NOTHING)

    def _current(self) -> list[JournalEntry]:
        if self._path is not None:
            try:
                self._read_on(self._path)
            except FileNotFoundError:
                self._forget()
        return self._entries

    def _read_on(self, path: str) -> None:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if status.st_ino != self._file_id or status.st_size < self._read_bytes:
                self._forget()
                self._file_id = status.st_ino
            file.seek(self._read_bytes)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._entries += [parse_line(line) for line in whole.decode().splitlines(keepends=True)]
        self._read_bytes += len(whole)

    def _forget(self) -> None:
        self._read_bytes = 0
        self._entries = []
