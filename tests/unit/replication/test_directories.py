"""Log directories that fail in a thread, are reported to the controller, and exchange replicas."""

import asyncio
import errno
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from logs import NOW_MS, append, read_records
from simulated_disk import SimulatedDisk
from steps import finished
from virtual_time import VirtualTime

from sskafka.client.broker_link import TaskLink
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.model.settings import Settings
from sskafka.replication.cluster_links import ClusterLinks
from sskafka.replication.directory_reports import DirectoryReports
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.replication.replica_moves import ReplicaMoves
from sskafka.replication.throttle import Throttle
from sskafka.servers.kafka.handlers.log_dirs import LogDirsHandler
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_manager import LogManager
from sskafka.storage.meta_properties import MetaProperties
from sskafka.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    ResponseDirectoryData,
    ResponsePartitionData,
    ResponseTopicData,
)
from sskafka.wire.messages.describe_log_dirs import DescribeLogDirsRequest

TOPIC, OTHER = b"t" * 16, b"u" * 16
HERE, THERE = b"h" * 16, b"d" * 16
TP = TopicPartition("orders", 0)
SEGMENT = "/a/orders-0/00000000000000000000.log"
IDS = iter(range(1, 1000))


def manager_of(disk: SimulatedDisk) -> LogManager:
    return LogManager.open(
        disk, ("/a", "/b"), node_id=1, format_as=lambda: MetaProperties("cluster", 1, next(IDS).to_bytes(16))
    )


def test_a_directory_that_fails_in_a_thread_is_taken_offline_on_the_loop() -> None:
    """Only the thread-safe way wakes a loop that sleeps."""
    settings = Settings.resolve(file={}, environment={}, overrides={"node.id": "1"})
    logs = manager_of(SimulatedDisk())
    called: list[threading.Thread] = []

    async def run() -> None:
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def call_soon_threadsafe(take_offline: Callable[[], None]) -> None:
            def call() -> None:
                called.append(threading.current_thread())
                take_offline()
                done.set()

            loop.call_soon_threadsafe(call)

        ReplicaManager(
            1,
            logs,
            settings,
            VirtualTime(),
            lambda call: pytest.fail("not from a thread"),
            call_soon_threadsafe=call_soon_threadsafe,
        )
        health = logs.directories[0].health
        await loop.run_in_executor(None, health.fail, OSError(errno.EIO, "Input/output error"))
        async with asyncio.timeout(5):
            await done.wait()

    asyncio.run(run())
    assert called == [threading.main_thread()]


# -- reports


class Controller(TaskLink):
    """Answers with these outcomes, one after the other, then with success."""

    def __init__(self, *answers: Exception | ErrorCode, refuses: ErrorCode = ErrorCode.NONE) -> None:
        super().__init__()
        self.requests: list[AssignReplicasToDirsRequest] = []
        self._answers = list(answers)
        self._refuses = refuses

    async def request(self, request: Any, response_class: Any) -> Any:
        self.requests.append(request)
        answer = self._answers.pop(0) if self._answers else ErrorCode.NONE
        if isinstance(answer, Exception):
            raise answer
        if answer is not ErrorCode.NONE:
            return AssignReplicasToDirsResponse(error_code=answer)
        return AssignReplicasToDirsResponse(
            directories=[
                ResponseDirectoryData(
                    directory.id,
                    [
                        ResponseTopicData(
                            topic.topic_id,
                            [ResponsePartitionData(part.partition_index, self._refuses) for part in topic.partitions],
                        )
                        for topic in directory.topics
                    ],
                )
                for directory in request.directories
            ]
        )


def run_beside(work: Callable[[], Coroutine[Any, Any, None]], until: Awaitable[Any]) -> Any:
    """`until` is awaited while `work` runs."""

    async def run() -> Any:
        task = asyncio.get_running_loop().create_task(work())
        try:
            async with asyncio.timeout(10):
                return await until
        finally:
            task.cancel()

    return asyncio.run(run())


def reports_to(
    controller: Controller, known: dict[tuple[bytes, int], bytes] | None = None, epoch: int = 5
) -> DirectoryReports:
    links = ClusterLinks(
        lambda broker_id: pytest.fail("reports go to the controller"),
        controller,
        lambda delay_s, call: asyncio.get_running_loop().call_later(delay_s, call),
        lambda: epoch,
    )
    return DirectoryReports(1, links, lambda topic, index: (known or {}).get((topic, index)))


def test_reports_are_gathered_and_sent_until_they_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sskafka.replication.directory_reports.RETRY_PAUSE_S", 0.001)
    controller = Controller(KafkaError(ErrorCode.REQUEST_TIMED_OUT), ErrorCode.STALE_BROKER_EPOCH)
    reports = reports_to(controller)

    async def report_all() -> ErrorCode:
        reports.report(TOPIC, 0, HERE)
        reports.report(TOPIC, 1, THERE)
        reports.report(OTHER, 0, HERE)
        return await asyncio.wait_for(reports.reported(TOPIC, 2, HERE), 10)

    assert asyncio.run(report_all()) is ErrorCode.NONE
    assert len(controller.requests) == 3
    last = controller.requests[-1]
    assert (last.broker_id, last.broker_epoch) == (1, 5)
    told = {
        directory.id: {
            topic.topic_id: [part.partition_index for part in topic.partitions] for topic in directory.topics
        }
        for directory in last.directories
    }
    assert told == {HERE: {TOPIC: [0, 2], OTHER: [0]}, THERE: {TOPIC: [1]}}


def test_what_the_metadata_knows_is_not_reported() -> None:
    controller = Controller()
    reports = reports_to(controller, {(TOPIC, 0): HERE})
    assert asyncio.run(asyncio.wait_for(reports.reported(TOPIC, 0, HERE), 10)) is ErrorCode.NONE
    assert controller.requests == []


def test_nothing_is_reported_before_the_broker_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sskafka.replication.directory_reports.RETRY_PAUSE_S", 0.001)
    reports = reports_to(controller := Controller(), epoch=-1)

    async def run() -> None:
        waiting = asyncio.ensure_future(reports.reported(TOPIC, 0, HERE))
        await asyncio.wait([waiting], timeout=0.05)
        assert controller.requests == []
        reports._broker_epoch = lambda: 5
        assert await asyncio.wait_for(waiting, 10) is ErrorCode.NONE

    asyncio.run(run())
    assert [request.broker_epoch for request in controller.requests] == [5]


def test_nothing_is_sent_after_a_stop() -> None:
    reports = reports_to(controller := Controller())

    async def run() -> None:
        reports.report(TOPIC, 0, HERE)
        reports.stop()
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(run())
    assert controller.requests == []


def test_a_refusal_is_told() -> None:
    reports = reports_to(Controller(refuses=ErrorCode.UNKNOWN_TOPIC_ID))
    outcome = asyncio.run(asyncio.wait_for(reports.reported(TOPIC, 0, HERE), 10))
    assert outcome is ErrorCode.UNKNOWN_TOPIC_ID


# -- moves


class Replica:
    """As much of a partition as a move needs."""

    topic_partition, topic_id = TP, TOPIC

    def __init__(self, logs: LogManager) -> None:
        self.log = logs.open_log(TP, TOPIC, LogConfig(), NOW_MS, directory=logs.directories[0])
        self.has_moved = asyncio.Event()
        self.high_watermark = self.log.log_end_offset

    def replace_log(self, log: Any) -> None:
        self.log = log
        self.has_moved.set()


class Moving:
    def __init__(self, controller: Controller) -> None:
        self.disk = SimulatedDisk()
        self.logs = manager_of(self.disk)
        self.replica = Replica(self.logs)
        self.reports = reports_to(controller)
        partition: Any = self.replica
        executor = ThreadPoolExecutor(1)
        self.throttle = Throttle(lambda: time.monotonic() * 1000)
        self.moves = ReplicaMoves(
            self.logs, lambda *key: partition, self.reports, VirtualTime(), executor, self.throttle
        )

    async def run(self) -> None:
        await self.moves.run()


def test_a_replica_moves_once_the_controller_knows() -> None:
    moving = Moving(controller := Controller())
    for n in range(50):
        append(moving.replica.log, b"%d" % n)
    target = moving.logs.directories[1]
    moving.moves.ask(TP, target)
    run_beside(moving.run, moving.replica.has_moved.wait())
    assert moving.logs.log_dir_of(TP) is target
    assert read_records(moving.replica.log) == [(n, b"%d" % n) for n in range(50)]
    assert [directory.id for request in controller.requests for directory in request.directories] == [
        target.directory_id
    ]


@pytest.mark.parametrize("rate", [1_000_000_000, None])
def test_a_move_is_throttled_and_goes_on_at_once_when_the_rate_is_raised(rate: int | None) -> None:
    moving = Moving(Controller())
    for _ in range(20):
        append(moving.replica.log, bytes(1000))
    target = moving.logs.directories[1]
    moving.throttle.limit_to(1)
    moving.moves.ask(TP, target)

    async def lift() -> None:
        while not target.futures or next(iter(target.futures.values())).log_end_offset == 0:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
        assert next(iter(target.futures.values())).log_end_offset < 20, "the throttle holds it back"
        moving.throttle.limit_to(rate)
        await asyncio.wait_for(moving.replica.has_moved.wait(), 5)

    run_beside(moving.run, lift())
    assert moving.logs.log_dir_of(TP) is target
    assert moving.replica.log.log_end_offset == 20


def test_a_replica_stays_when_the_controller_refuses() -> None:
    moving = Moving(Controller(refuses=ErrorCode.UNKNOWN_TOPIC_ID))
    append(moving.replica.log, b"a")
    source, target = moving.logs.directories
    moving.moves.ask(TP, target)
    run_beside(moving.run, until_given_up(moving.moves))
    assert moving.logs.log_dir_of(TP) is source
    assert target.futures == {}
    assert append(moving.replica.log, b"b") == 1


def test_a_directory_that_cannot_sync_the_copy_fails_and_the_original_stays() -> None:
    moving = Moving(Controller())
    append(moving.replica.log, b"a")
    source, target = moving.logs.directories

    def fault(operation: str, path: str) -> None:
        if operation == "sync" and path.startswith("/b/"):
            raise OSError(errno.EIO, "Input/output error")

    disk: Any = moving.replica.log.log_directory.disk
    disk.fault = fault
    moving.moves.ask(TP, target)
    run_beside(moving.run, until_given_up(moving.moves))
    assert not target.is_online
    assert moving.logs.log_dir_of(TP) is source
    assert append(moving.replica.log, b"b") == 1


def flip(path: str, position: int, bit: int = 1) -> Callable[["Moving"], None]:
    def damage(moving: "Moving") -> None:
        moving.disk.nodes[path].data[position] ^= bit

    return damage


def fail(operation: str, path: str, code: int) -> Callable[["Moving"], None]:
    """Every operation of this kind on a file whose name begins like that fails."""

    def fault(asked: str, at: str) -> None:
        if asked == operation and at.startswith(path):
            raise OSError(code, "fault", at)

    return lambda moving: setattr(moving.disk, "fault", fault)


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(flip(SEGMENT, 80), id="a damaged record"),
        pytest.param(flip(SEGMENT, 16), id="a damaged magic"),
        pytest.param(flip(SEGMENT, 7, 2), id="a damaged offset"),
        pytest.param(flip(SEGMENT, 8, 64), id="a length beyond the end"),
        pytest.param(flip(SEGMENT, 8, 128), id="a negative length"),
        pytest.param(fail("make_directory", "/b/", errno.ENOSPC), id="no room for the copy"),
        pytest.param(fail("truncate", "/b/", errno.ENOSPC), id="no room for a file of the copy"),
        pytest.param(fail("write", "/b/", errno.ENOSPC), id="no room for the batches"),
    ],
)
def test_a_move_that_fails_is_given_up_and_the_original_stays(
    happens: Callable[["Moving"], None], caplog: pytest.LogCaptureFixture
) -> None:
    moving = Moving(Controller())
    for n in range(20):
        append(moving.replica.log, b"%d" % n + bytes(30_000))  # more than is read at once
    source, target = moving.logs.directories
    happens(moving)
    moving.moves.ask(TP, target)
    run_beside(moving.run, until_given_up(moving.moves))
    moving.disk.fault = None
    assert f"{TP} could not be moved to /b and stays where it is" in caplog.text
    assert (moving.logs.log_dir_of(TP), target.futures) == (source, {})
    assert (source.is_online, target.is_online) == (True, True)
    assert append(moving.replica.log, b"more") == 20
    moving.logs.remove_deleted_files(NOW_MS)
    assert not [path for path in moving.disk.directories if path.startswith("/b/")]


def test_a_disk_that_cannot_be_read_takes_its_directory_offline_and_ends_the_move() -> None:
    moving = Moving(Controller())
    append(moving.replica.log, b"a")
    source, target = moving.logs.directories
    fail("read", SEGMENT, errno.EIO)(moving)
    moving.moves.ask(TP, target)
    run_beside(moving.run, until_given_up(moving.moves))
    assert (source.is_online, target.is_online) == (False, True)


async def until_given_up(moves: ReplicaMoves) -> None:
    while moves._wanted:  # noqa: ASYNC110
        await asyncio.sleep(0.001)


def test_a_copy_is_described_with_its_lag() -> None:
    logs = manager_of(SimulatedDisk())
    log = logs.open_log(TP, TOPIC, LogConfig(), NOW_MS, directory=logs.directories[0])
    for n in range(3):
        append(log, b"%d" % n)
    logs.begin_move(TP, logs.directories[1], NOW_MS)
    replicas: Any = SimpleNamespace(high_watermarks=lambda: {TP: 3})
    whoever: Any = None
    results = finished(
        LogDirsHandler(logs, replicas, None).describe(DescribeLogDirsRequest(topics=None), whoever)
    ).results
    described = [(result.log_dir, topic.partitions[0]) for result in results for topic in result.topics]
    assert [(path, part.is_future_key, part.offset_lag) for path, part in described] == [
        ("/a", False, 0),
        ("/b", True, 3),
    ]


@pytest.mark.parametrize("concurrent", [1, 2])
def test_as_many_replicas_move_at_a_time_as_is_set(concurrent: int) -> None:
    """The moves wait for a rate that lets nothing pass; so many have begun."""
    moving = Moving(Controller())
    others = [TopicPartition("t", number) for number in (5, 6)]
    logs = [moving.logs.open_log(tp, TOPIC, LogConfig(), NOW_MS, directory=moving.logs.directories[0]) for tp in others]
    for log in logs:
        for _ in range(20):
            append(log, bytes(1000))
    found: dict[tuple[str, int], Any] = {}
    for tp, log in zip(others, logs, strict=True):
        replica = Replica.__new__(Replica)
        replica.topic_partition, replica.log, replica.has_moved = tp, log, asyncio.Event()
        replica.high_watermark = log.log_end_offset
        found[tp] = replica
    target = moving.logs.directories[1]
    moving.throttle.limit_to(1)
    moving.moves = ReplicaMoves(
        moving.logs,
        lambda *key: found.get(key),
        moving.reports,
        VirtualTime(),
        ThreadPoolExecutor(1),
        moving.throttle,
        concurrent,
    )
    for tp in others:
        moving.moves.ask(tp, target)

    async def begun() -> int:
        async with asyncio.timeout(5):
            while len(target.futures) < concurrent:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
        return len(target.futures)

    assert run_beside(moving.run, begun()) == concurrent
