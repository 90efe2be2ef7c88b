"""How many requests a micro-batch takes on real brokers: what Spark calls is called here, in one process."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from spark_fixtures import Produce

from sskafka.client.connection import BrokerConnection
from sskafka.client.coordinators import CoordinatorType
from sskafka.client.transactions import describe, initialize
from sskafka.pipelines.connector import sink
from sskafka.pipelines.connector.committing import prefix_of
from sskafka.pipelines.connector.errors import NotDecidedError
from sskafka.pipelines.connector.options import BOOTSTRAP, SinkOptions, sink_options, source_options
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.connector.read_ahead import RECORDS_MAX
from sskafka.pipelines.connector.sink import REUSED, StreamWriter, TaskWritten
from sskafka.pipelines.connector.source import StreamReader

BATCHES = 6
COMMITTED = {"kafka.isolation.level": "read_committed"}
TWO_PARTS_COMMIT = {"DescribeTransactions": 2, "AddPartitionsToTxn": 2, "Produce": 2, "EndTxn": 4}
"""A decision and its outcome take three requests each; each part is inspected and committed."""


class TaskContext:
    """What Spark tells a task of the query that it belongs to."""

    def __init__(self, query: str, batch: int, slot: int = 0) -> None:
        self._slot = slot
        self._properties = {
            "sql.streaming.queryId": query,
            "streaming.sql.batchId": str(batch),
            "spark.jobGroup.id": "run-id",
        }

    def getLocalProperty(self, name: str) -> str | None:
        return self._properties.get(name)

    def partitionId(self) -> int:
        return self._slot

    def attemptNumber(self) -> int:
        return 0


class Requests:
    """Counts what the client sends, by the part of the batch that sends it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._sent: list[str] = []
        send = BrokerConnection._send

        def counted(connection: BrokerConnection, message: Any, version: int) -> Any:
            self._sent.append(type(message).__name__.removesuffix("Request"))
            return send(connection, message, version)

        monkeypatch.setattr(BrokerConnection, "_send", counted)

    def taken(self) -> Counter[str]:
        taken, self._sent[:] = Counter(self._sent), []
        return taken


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Requests:
    return Requests(monkeypatch)


def batches_of(
    bootstrap: str, source: str, target: str, requests: Requests, monkeypatch: pytest.MonkeyPatch, produce: Produce
) -> Iterator[dict[str, Counter[str]]]:
    """The requests of each micro-batch: of planning, reading, writing and committing."""
    reader = StreamReader(source_options({BOOTSTRAP: bootstrap, "subscribe": source}, streaming=True))
    options = sink_options({BOOTSTRAP: bootstrap, "topic": target, "transactionalIdPrefix": target})
    start = reader.initialOffset()
    for batch in range(BATCHES):
        produce(source, [b"%d" % batch])
        requests.taken()
        end = reader.latestOffset(start, ReadAllAvailable())
        (task,) = reader.partitions(start, end)
        counted = {"plan": requests.taken()}
        rows = list(reader.read(task))
        counted["read"] = requests.taken()
        monkeypatch.setattr(sink.TaskContext, "get", classmethod(lambda _, batch=batch: TaskContext(target, batch)))
        values = [part.select(["value"]) for part in rows]
        assert pa.Table.from_batches(values).column("value").to_pylist() == [b"%d" % batch]
        message = StreamWriter(options).write(iter(values))
        counted["write"] = requests.taken()
        StreamWriter(options).commit([message], batch)
        counted["commit"] = requests.taken()
        yield counted
        start = end
    reader.stop()


def written(
    options: SinkOptions, target: str, batch: int, monkeypatch: pytest.MonkeyPatch, tasks: int
) -> list[TaskWritten]:
    """What the tasks of a batch return; each has one row."""
    messages = []
    for slot in range(tasks):
        context = TaskContext(target, batch, slot)
        monkeypatch.setattr(sink.TaskContext, "get", classmethod(lambda _, context=context: context))
        rows = pa.RecordBatch.from_pydict({"value": [b"%d" % batch]})
        messages.append(StreamWriter(options).write(iter([rows])))
    return messages


def test_a_batch_in_the_steady_state(
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Produce,
    requests: Requests,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A busy broker may answer that a transaction is still ending: the batch without such an answer counts."""
    source, target = new_topic(1), new_topic(1)
    _, *later = batches_of(bootstrap, source, target, requests, monkeypatch, produce)
    fewest = min(later, key=lambda parts: sum(map(Counter.total, parts.values())))
    assert fewest["write"].pop("Produce") in {1, 2}, "the leaders of the topic and of the control topic"
    assert fewest == {
        "plan": {"OffsetCommit": 1, "Metadata": 1, "ListOffsets": 2},
        "read": {"Fetch": 1},
        "write": {"AddPartitionsToTxn": 1},
        "commit": {"EndTxn": 1},
    }


def test_a_task_that_finds_nothing_handed_over_begins_a_transaction_of_its_own(
    bootstrap: str, new_topic: Callable[..., str], requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine that is not that of the driver."""
    monkeypatch.setattr(sink.HandoverFile, "take", lambda _: None)
    target = new_topic(1)
    options = sink_options({BOOTSTRAP: bootstrap, "topic": target, "transactionalIdPrefix": target})
    counted = []
    for batch in range(BATCHES):
        requests.taken()
        messages = written(options, target, batch, monkeypatch, tasks=1)
        counted.append(requests.taken())
        StreamWriter(options).commit(messages, batch)
    assert min(counted[1:], key=Counter.total) == {"InitProducerId": 1, "AddPartitionsToTxn": 1, "Produce": 1}
    assert committed_values(bootstrap, target) == [b"%d" % batch for batch in range(BATCHES)]


def test_a_handover_whose_driver_was_fenced_is_given_up(
    bootstrap: str, new_topic: Callable[..., str], session: ClusterSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process fences the driver before a task uses the handover, and after it."""
    target = new_topic(1)
    options = sink_options({BOOTSTRAP: bootstrap, "topic": target, "transactionalIdPrefix": target})
    driver = f"{prefix_of(target, target)}-driver"
    for batch in range(4):
        if batch == 2:
            session.run(initialize(session.cluster, driver, 60_000))
        messages = written(options, target, batch, monkeypatch, tasks=1)
        assert (messages[0].handed is None) == (batch in {0, 2})
        if batch == 3:
            session.run(initialize(session.cluster, driver, 60_000))
            with pytest.raises(NotDecidedError, match="No part of the batch is visible"):
                StreamWriter(options).commit(messages, batch)
            messages = written(options, target, batch, monkeypatch, tasks=1)
        StreamWriter(options).commit(messages, batch)
    assert committed_values(bootstrap, target) == [b"0", b"1", b"2", b"3"]


def test_a_batch_that_has_more_parts_than_the_one_before(
    bootstrap: str, new_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first task writes in the driver's transaction, and the second one does not."""
    target = new_topic(1)
    options = sink_options({BOOTSTRAP: bootstrap, "topic": target, "transactionalIdPrefix": target})
    handed = []
    for batch, tasks in enumerate((1, 1, 2, 1, 1, 1)):
        messages = written(options, target, batch, monkeypatch, tasks)
        handed.append([message.handed is not None for message in messages])
        StreamWriter(options).commit(messages, batch)
    assert handed == [[False], [True], [True, False], [False], [True], [True]]
    assert sorted(committed_values(bootstrap, target)) == [b"0", b"1", b"2", b"2", b"3", b"4", b"5"]


def committed_values(bootstrap: str, topic: str) -> list[bytes]:
    found: list[bytes] = []
    options = source_options(
        {BOOTSTRAP: bootstrap, "subscribe": topic, "startingOffsets": "earliest", **COMMITTED}, streaming=True
    )
    reader = StreamReader(options)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    for task in reader.partitions(start, end):
        for part in reader.read(task):
            found += part.column("value").to_pylist()
    reader.stop()
    return found


def test_the_records_of_a_small_batch_are_fetched_while_it_is_planned(
    bootstrap: str, new_topic: Callable[..., str], produce: Produce, requests: Requests
) -> None:
    topic = new_topic(2)
    reader = StreamReader(source_options({BOOTSTRAP: bootstrap, "subscribe": topic}, streaming=True))
    reader._reads_ahead = True  # as in Spark's planning process
    start = reader.initialOffset()
    for batch in range(3):
        produce(topic, [b"%d" % batch], batch % 2)
        requests.taken()
        end = reader.latestOffset(start, ReadAllAvailable())
        assert requests.taken()["Fetch"] == 1
        (task,) = reader.partitions(start, end)
        rows = reader.take_rows(start, end)
        assert rows is not None
        assert pa.Table.from_batches(rows) == pa.Table.from_batches(reader.read(task)), "a task would read the same"
        assert rows[0].column("value").to_pylist() == [b"%d" % batch]
        assert reader.take_rows(start, end) is None
        start = end
    produce(topic, [b"x"] * (RECORDS_MAX + 1))
    end = reader.latestOffset(start, ReadAllAvailable())
    assert reader.take_rows(start, end) is None
    reader.stop()


def test_the_outcome_is_recorded_while_spark_begins_the_next_batch(
    bootstrap: str, new_topic: Callable[..., str], requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(REUSED, "1")
    target = new_topic(1)
    options = sink_options({BOOTSTRAP: bootstrap, "topic": target, "transactionalIdPrefix": target})
    threads, commits = set(), []
    record = StreamWriter._record
    monkeypatch.setattr(
        StreamWriter, "_record", lambda *of: (threads.add(threading.current_thread().name), record(*of))[1]
    )
    for batch in range(BATCHES):
        messages = written(options, target, batch, monkeypatch, tasks=2)
        sink.recorder.wait()
        requests.taken()
        StreamWriter(options).commit(messages, batch)
        sink.recorder.wait()
        commits.append(requests.taken())
    assert threads == {"outcome-recorder"}
    assert min(commits[1:], key=Counter.total) == TWO_PARTS_COMMIT


def test_a_commit_reads_the_control_topic_again_once_another_process_has_committed(
    bootstrap: str, new_topic: Callable[..., str], requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark has several processes for commits. What one of them keeps is stale when another has fenced it."""
    target = new_topic(1)
    options = sink_options({BOOTSTRAP: bootstrap, "topic": target, "transactionalIdPrefix": target})
    kept: dict[int, Any] = {}
    for batch, process in enumerate((0, 0, 1, 0, 0)):
        monkeypatch.setattr(sink, "_committers", kept.setdefault(process, {}))
        messages = written(options, target, batch, monkeypatch, tasks=2)
        requests.taken()
        StreamWriter(options).commit(messages, batch)
        reads = requests.taken()["Fetch"]
        assert reads == (0 if (batch, process) in {(1, 0), (4, 0)} else 2), (
            "before it fences the driver, and after that"
        )


def test_a_coordinator_that_is_not_one_is_forgotten(session: ClusterSession, new_topic: Callable[..., str]) -> None:
    name = new_topic(1)
    taken = session.run(initialize(session.cluster, name, 60_000))
    (key, right), *_ = session.cluster.coordinators.items()
    assert key == (CoordinatorType.TRANSACTION, name)
    session.cluster.coordinators[key] = next(broker for broker in session.cluster.view.brokers if broker != right)
    assert session.run(describe(session.cluster, name)).producer_id == taken.producer_id
    assert session.cluster.coordinators[key] == right
