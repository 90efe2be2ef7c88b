"""The state of a backfill in its checkpoint: the offsets of its range, and the sinks that are done.

    <checkpoint>/backfill.json          range, offsets by source, row counts of the queries that are done, when it ended
    <checkpoint>/<query>/metadata       {"id": ...}    as in Spark's checkpoints: sinks recognize the batch by this id
    <checkpoint>/<query>/offsets/0      the offsets, in the format of Spark's checkpoints

The offsets are looked up once, so that a backfill up to `latest` that is killed and started again reads the same
records.
"""

import json
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sskafka.pipelines.connector.checkpoint import local_path, read_checkpoint
from sskafka.pipelines.runner.backfill_range import SourceRange

FILE = "backfill.json"
BATCH = 0
"""A backfill is one batch in each sink."""


@dataclass(slots=True)
class QueryDone:
    """A sink that has all rows of the range."""

    rows_in: int | None
    """None if the run that wrote the rows was killed before it could report the count."""
    rows_out: int | None
    at: str
    unmet: dict[str, int] = field(default_factory=dict)


class BackfillState:
    def __init__(self, root: str) -> None:
        self._root = root
        self.ranges: dict[str, SourceRange] = {}
        self.done: dict[str, QueryDone] = {}
        self.finished = ""
        """When the function `after` had returned, too."""
        text = read_checkpoint(root, FILE)
        if text is not None:
            fields = json.loads(text)
            self.ranges = {name: SourceRange(*both) for name, both in fields["ranges"].items()}
            self.done = {name: QueryDone(**one) for name, one in fields["done"].items()}
            self.finished = fields.get("finished", "")

    def is_written(self, queries: list[str]) -> bool:
        return bool(self.ranges) and all(query in self.done for query in queries)

    def begin(self, ranges: Mapping[str, SourceRange]) -> None:
        self.ranges = dict(ranges)
        self._save()

    def begin_query(self, query: str) -> None:
        """Give the query an id by which sinks recognize it, unless it has one."""
        if read_checkpoint(self._root, f"{query}/metadata") is None:
            _write(self._root, f"{query}/offsets/{BATCH}", f"v1\n{{}}\n{json.dumps(self.ranges)}\n")
            _write(self._root, f"{query}/metadata", json.dumps({"id": str(uuid.uuid4())}))

    def finish_query(self, query: str, done: QueryDone) -> None:
        self.done[query] = done
        self._save()

    def finish(self) -> None:
        self.finished = now_text()
        self._save()

    def forget(self) -> None:
        """Delete the state: sinks treat what is written next as another batch."""
        directory = local_path(self._root)
        if directory is not None:
            shutil.rmtree(directory, ignore_errors=True)
        else:
            system, root = _remote(self._root)
            system.delete_dir(root)
        self.ranges, self.done, self.finished = {}, {}, ""

    def _save(self) -> None:
        done = {name: asdict(one) for name, one in self.done.items()}
        _write(self._root, FILE, json.dumps({"ranges": self.ranges, "done": done, "finished": self.finished}, indent=1))


def now_text() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _write(root: str, name: str, text: str) -> None:
    """Write a file atomically."""
    directory = local_path(root)
    if directory is None:
        system, base = _remote(root)
        with system.open_output_stream(f"{base}/{name}") as stream:
            stream.write(text.encode())
        return
    file = Path(directory) / name
    file.parent.mkdir(parents=True, exist_ok=True)
    written = file.with_name(f"{file.name}.{uuid.uuid4().hex[:8]}.tmp")
    written.write_text(text, encoding="utf-8")
    written.rename(file)


def _remote(root: str) -> tuple[Any, str]:
    from pyarrow import fs  # noqa: PLC0415  few checkpoints need it

    system, base = fs.FileSystem.from_uri(root.replace("s3a://", "s3://", 1))
    return system, base.rstrip("/")
