"""Small parts of the sink: ids of tasks, replicas of its topics, what it reads of a checkpoint."""

import json
import os
from pathlib import Path

import pytest

from sskafka.client.admin import NewTopic
from sskafka.pipelines.connector import transactions
from sskafka.pipelines.connector.checkpoint import offsets_digest, place_of, query_id_of
from sskafka.pipelines.connector.committing import prefix_of
from sskafka.pipelines.connector.errors import OptionError
from sskafka.pipelines.connector.topic_batches import TopicBatches
from sskafka.pipelines.connector.topics import replicated
from sskafka.pipelines.connector.transactions import ProcessIds, ids_of_this_process


def test_two_tasks_of_a_batch_have_two_ids_and_the_next_batch_has_them_again() -> None:
    ids = ProcessIds("ab")
    first = [ids.next_id("q", 3, 0) for _ in range(2)]
    assert first == ["q-3-ab-0", "q-3-ab-1"]
    assert [ids.next_id("q", 3, 1) for _ in range(3)] == [*first, "q-3-ab-2"]


def test_a_task_of_an_older_batch_does_not_take_the_id_of_a_newer_one() -> None:
    ids = ProcessIds("ab")
    assert ids.next_id("q", 3, 5) == "q-3-ab-0"
    assert ids.next_id("q", 3, 4) == "q-3-ab-1"


def test_epochs_and_queries_have_their_own_ids() -> None:
    ids = ProcessIds("ab")
    assert len({ids.next_id("q", 3, 0), ids.next_id("q", 4, 0), ids.next_id("r", 3, 0)}) == 3


def test_a_forked_worker_is_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = ids_of_this_process()
    assert ids_of_this_process() is mine
    monkeypatch.setattr(transactions.os, "getpid", os.getppid)
    assert ids_of_this_process().name != mine.name


def test_two_jobs_of_one_name_have_prefixes_of_their_own() -> None:
    assert prefix_of("job", "id-1") != prefix_of("job", "id-2")
    assert prefix_of("", "id-1") == "spark-id-1"


@pytest.mark.parametrize(("brokers", "replicas", "in_sync"), [(1, 1, "1"), (2, 2, "1"), (3, 3, "2"), (7, 3, "2")])
def test_topics_have_as_many_replicas_as_the_cluster_can_give(brokers: int, replicas: int, in_sync: str) -> None:
    topic = replicated(NewTopic("t", 1, configs={"cleanup.policy": "compact"}), brokers)
    assert topic.replication_factor == replicas
    assert topic.configs == {"min.insync.replicas": in_sync, "cleanup.policy": "compact"}


def test_what_a_checkpoint_says(tmp_path: Path) -> None:
    assert query_id_of(str(tmp_path)) is None
    (tmp_path / "metadata").write_text(json.dumps({"id": "abc"}))
    assert query_id_of(str(tmp_path)) == query_id_of(f"file://{tmp_path}") == query_id_of(f"file:{tmp_path}") == "abc"
    assert place_of(f"{tmp_path}/x/..") == place_of(f"file://{tmp_path}") == f"file:{tmp_path}"
    assert place_of("s3a://bucket/path/") == "s3a://bucket/path"
    assert place_of("") == place_of("relative/path") == ""


def test_batches_of_one_number_are_told_apart_by_their_offsets(tmp_path: Path) -> None:
    offsets = tmp_path / "offsets"
    offsets.mkdir()
    assert offsets_digest(str(tmp_path), 3) == ""
    assert offsets_digest("", 3) == ""
    batch = offsets / "3"
    batch.write_text('v1\n{"batchTimestampMs":1}\n{"t":{"0":7}}')
    first = offsets_digest(str(tmp_path), 3)
    batch.write_text('v1\n{"batchTimestampMs":2}\n{"t":{"0":7}}')
    assert offsets_digest(str(tmp_path), 3) == first
    batch.write_text('v1\n{"batchTimestampMs":2}\n{"t":{"0":8}}')
    assert offsets_digest(str(tmp_path), 3) not in {first, ""}


def test_batches_of_update_mode_need_the_checkpoint() -> None:
    with pytest.raises(OptionError, match=r"checkpointLocation.* is missing"):
        TopicBatches({"topic": "t"})


class Rows:
    """A table that keeps the options with which it is written, and cannot be written when `fails`."""

    def __init__(self) -> None:
        self.write = self.sparkSession = self.read = self
        self.fails = False
        self.runs: list[str] = []

    def text(self, _path: str) -> "Rows":
        return self

    def collect(self) -> list[tuple[str]]:
        return [('{"id": "query"}',)]

    def format(self, _name: str) -> "Rows":
        return self

    def mode(self, _mode: str) -> "Rows":
        return self

    def options(self, **options: str) -> "Rows":
        self.runs.append(options["queryRun"])
        return self

    def save(self) -> None:
        if self.fails:
            raise RuntimeError("a task failed")


def test_a_query_that_is_started_again_with_the_same_object_is_another_run() -> None:
    rows, batches = Rows(), TopicBatches({"topic": "t", "checkpointLocation": "c"})
    batches(rows, 0)  # type: ignore[arg-type]
    batches(rows, 1)  # type: ignore[arg-type]
    rows.fails = True
    with pytest.raises(RuntimeError):
        batches(rows, 2)  # type: ignore[arg-type]
    rows.fails = False
    batches(rows, 2)  # type: ignore[arg-type]
    batches(rows, 3)  # type: ignore[arg-type]
    batches(rows, 3)  # type: ignore[arg-type]
    first, second, third, fourth, fifth, sixth = rows.runs
    assert first == second == third
    assert fourth == fifth
    assert len({third, fourth, sixth}) == 3
