"""A pipeline that copies numbers from a topic into Parquet, Delta and another topic, in many small micro-batches.

`sskafka pipeline run` runs it in processes of its own; how far it has come is told by its checkpoints.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import deltalake
import pyarrow.parquet as pq
from process_session import ProcessSession
from waiting import wait_until

from sskafka.pipelines.connector.checkpoint import query_id_of
from sskafka.pipelines.connector.committing import prefix_of
from sskafka.pipelines.files.pipeline import load_pipeline
from sskafka.pipelines.runner.leftovers import listed_names
from sskafka.pipelines.runner.recovery import checkpoint_of, transactional_prefix
from sskafka.pipelines.shipped.reading import committed_records

SSKAFKA = str(Path(sys.executable).with_name("sskafka"))
SINKS = ("parquet", "delta", "topic")
PER_BATCH = 100
MORE_RECORDS = 10 * PER_BATCH
EVERYTHING = 1_000_000
STEP_TIMEOUT_S = 240
LOOK_EVERY_S = 0.05
VISIBLE_WITHIN_S = 30
"""A commit is answered when it is decided; brokers write its markers after that."""
FILE = """\
name: {name}
sources:
  numbers:
    topic: {topic}
    format: text
    max_offsets_per_trigger: {per_batch}
    options: {options}
transform:
  sql: select cast(value as long) as id from numbers
sinks:
  - parquet: {{path: parquet}}
  - delta: {{path: delta}}
  - topic: {{topic: {name}-out, partitions: 2}}
trigger: 100 milliseconds
spark: {{spark.sql.shuffle.partitions: 2}}
"""


class Batches(NamedTuple):
    """Of one query, as its checkpoint tells: the newest that was planned, and the newest that is done."""

    planned: int
    done: int

    @property
    def is_under_way(self) -> bool:
        return self.planned > self.done


class Copying:
    """The pipeline's file, its runs, and what is in its sinks."""

    def __init__(self, directory: Path, bootstrap: str, topic: str, **options: object) -> None:
        self.directory = directory
        self.bootstrap = bootstrap
        self.topic = topic
        self._options = options
        self.file = directory / "pipeline.yaml"
        self._write_file(PER_BATCH)
        self._checkpoint = Path(load_pipeline(self.file).checkpoint_root)
        self._runs: list[ProcessSession] = []
        self._before: list[Batches] = []
        """How far it had come when the last run started."""

    def _write_file(self, per_batch: int) -> None:
        options = json.dumps(self._options)
        self.file.write_text(FILE.format(name=self.topic, topic=self.topic, per_batch=per_batch, options=options))

    @property
    def driver_id(self) -> str:
        """Of the query that writes the topic, which has run before."""
        pipeline = load_pipeline(self.file)
        query_id = query_id_of(checkpoint_of(pipeline, "topic"))
        assert query_id is not None
        return f"{prefix_of(transactional_prefix(pipeline, 'topic'), query_id)}-driver"

    @property
    def out(self) -> str:
        return f"{self.topic}-out"

    def start(self, *options: str) -> ProcessSession:
        command = [SSKAFKA, "pipeline", "run", str(self.file), "-b", self.bootstrap, "--master", "local[2]"]
        self._before = self.batches_of_sinks()
        run = ProcessSession([*command, *options], self.directory / f"run-{len(self._runs)}.log")
        self._runs.append(run)
        return run

    def complete(self) -> None:
        """Runs until everything is read, in one batch behind that which was cut off."""
        self._write_file(EVERYTHING)
        run = self.start("--once")
        assert run.wait() == 0, run.talk()

    def close(self) -> None:
        for run in self._runs:
            run.close()

    # How far it has come

    def batches_of_sinks(self) -> list[Batches]:
        return [self.batches(sink) for sink in SINKS]

    def batches(self, sink: str) -> Batches:
        return Batches(_newest(self._checkpoint / sink / "offsets"), _newest(self._checkpoint / sink / "commits"))

    def read_by(self, sink: str) -> int:
        """How many records are in batches that are done."""
        done = self.batches(sink).done
        if done < 0:
            return 0
        (_, _, offsets) = (self._checkpoint / sink / "offsets" / str(done)).read_text().splitlines()
        return sum(json.loads(offsets)[self.topic].values())

    def wait_for(self, count: int) -> None:
        """Until every sink is done with so many records."""
        self._wait_until(lambda: all(self.read_by(sink) >= count for sink in SINKS), f"all sinks have {count} records")

    def wait_for_a_batch_under_way(self, input_count: Callable[[], int], add_input: Callable[[int], None]) -> None:
        """Until every sink has ended a batch in this run, and is in the middle of a new one.

        On a busy machine one sink may reach the end of the input before another one begins: then there is more."""

        def is_so() -> bool:
            if any(self.read_by(sink) >= input_count() for sink in SINKS):
                add_input(MORE_RECORDS)
            pairs = zip(self._before, self.batches_of_sinks(), strict=True)
            return all(now.done >= max(before.planned, 0) and now.is_under_way for before, now in pairs)

        self._wait_until(is_so, "every sink is in the middle of a batch")

    def _wait_until(self, condition: Callable[[], bool], what: str) -> None:
        def is_so() -> bool:
            run = self._runs[-1]
            assert run.process.poll() is None, f"{what}: the run has ended before\n{run.talk()}"
            time.sleep(LOOK_EVERY_S)
            return condition()

        wait_until(is_so, what, STEP_TIMEOUT_S)

    # What is in the sinks

    def assert_each_once(self, count: int, *, parquet_by_lists: bool = False) -> None:
        expected = list(range(count))
        assert sorted(self.parquet(parquet_by_lists)) == expected
        assert sorted(self.delta()) == expected
        assert sorted(self.records(count)) == expected

    def parquet(self, by_lists: bool) -> list[int]:
        """What readers see that take the directory as it lies, or those that go by Spark's lists of files."""
        directory = self.directory / "parquet"
        listed = [directory / name for name in sorted(listed_names(directory))]
        found: list[int] = pq.read_table(listed if by_lists else directory, columns=["id"])["id"].to_pylist()
        return found

    def delta(self) -> list[int]:
        found: list[int] = deltalake.DeltaTable(self.directory / "delta").to_pyarrow_table()["id"].to_pylist()
        return found

    def records(self, count: int) -> list[int]:
        deadline = time.monotonic() + VISIBLE_WITHIN_S
        while True:
            values = [value for _, value in committed_records(self.bootstrap, self.out)]
            if len(values) >= count or time.monotonic() > deadline:
                return [json.loads(value or b"{}")["id"] for value in values]


def _newest(directory: Path) -> int:
    try:
        return max((int(file.name) for file in directory.iterdir() if file.name.isdecimal()), default=-1)
    except FileNotFoundError:
        return -1
