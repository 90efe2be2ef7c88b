"""Transactional ids of tasks. Each process that runs tasks has its own ids, and no other process initializes them: a
late attempt of a task cannot abort the attempt that replaced it.

Ids are reused, because coordinators remember each of them for days. A process reuses one of its ids for a later batch
of the same epoch: Spark starts a batch only after the previous one is committed.
"""

import os
import uuid
from dataclasses import dataclass, field


@dataclass(slots=True)
class ProcessIds:
    """The ids of one process, by prefix and epoch."""

    name: str
    last_batches: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    """The batch that last used the first, second, ... id."""

    def next_id(self, prefix: str, epoch: int, batch: int) -> str:
        used = self.last_batches.setdefault((prefix, epoch), [])
        for number, last in enumerate(used):
            if last < batch:
                used[number] = batch
                return transactional_id(prefix, epoch, self.name, number)
        used.append(batch)
        return transactional_id(prefix, epoch, self.name, len(used) - 1)


def transactional_id(prefix: str, epoch: int, process: str, number: int) -> str:
    return f"{prefix}-{epoch}-{process}-{number}"


_ids: dict[int, ProcessIds] = {}


def ids_of_this_process() -> ProcessIds:
    """Return the ids of this process. A worker that Spark has forked must not use the ids of its parent."""
    pid = os.getpid()
    if pid not in _ids:
        _ids.clear()
        _ids[pid] = ProcessIds(uuid.uuid4().hex[:12])
    return _ids[pid]
