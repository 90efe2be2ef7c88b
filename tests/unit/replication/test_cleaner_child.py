"""The life cycle of a cleaner process."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from compacting import LIMITS, job_for, put
from logs import NOW_MS, reopen

from sskafka.replication import cleaner_child
from sskafka.replication.cleaner_child import CleanerChild
from sskafka.storage.compaction.cleaning_job import (
    Answer,
    CleanedGroup,
    CleaningFailure,
    CleaningJob,
    CleaningStats,
    encode_answer,
)
from sskafka.storage.disk import OsDisk
from sskafka.storage.log import Log
from sskafka.storage.log_config import LogConfig


def dirty_log(directory: Path) -> Log:
    config = LogConfig(cleanup_policy=("compact",), segment_bytes=300)
    log = reopen(OsDisk(), config, str(directory / "orders-0"))
    for n in range(50):
        put(log, (b"%d" % (n % 3), b"%d" % n), now_ms=NOW_MS)
    return log


def with_child(work: Callable[[CleanerChild], Coroutine[Any, Any, Any]]) -> Any:
    async def run() -> Any:
        with ThreadPoolExecutor(1) as executor:
            child = await CleanerChild.start(executor)
            try:
                async with asyncio.timeout(30):
                    return await work(child)
            finally:
                await child.end()

    return asyncio.run(run())


async def answers_of(child: CleanerChild, job: CleaningJob) -> list[Answer]:
    return [answer async for answer in child.clean(job)]


def test_one_child_does_one_job_after_the_other(tmp_path: Path) -> None:
    logs = [dirty_log(tmp_path / name) for name in ("one", "two")]

    async def work(child: CleanerChild) -> None:
        for log in logs:
            *groups, end = await answers_of(child, job_for(log, NOW_MS))
            assert all(isinstance(group, CleanedGroup) for group in groups)
            assert isinstance(end, CleaningStats)
            assert end.end_offset == log.segments.active.base_offset
        assert child.is_alive

    with_child(work)
    assert list((tmp_path / "one" / "orders-0").glob("*.log.cleaned"))


def test_a_group_of_very_many_segments_is_told_in_one_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Answer] = [CleanedGroup(tuple(range(10**9, 10**9 + 20_000)), 1), CleaningFailure("enough")]
    (tmp_path / "answers").write_bytes(b"".join(map(encode_answer, told)))
    path = str(tmp_path / "answers")
    script = f"import sys; input(); sys.stdout.write(open({path!r}).read()); sys.stdout.flush(); input()"
    monkeypatch.setattr(cleaner_child, "COMMAND", (sys.executable, "-c", script))
    job = job_for(dirty_log(tmp_path), NOW_MS)
    assert with_child(lambda child: answers_of(child, job)) == told


def test_what_fails_is_told_with_its_number(tmp_path: Path) -> None:
    log = dirty_log(tmp_path)
    job = job_for(log, NOW_MS)
    Path(log.segments.first.log_path).unlink()
    (failure,) = with_child(lambda child: answers_of(child, job))
    assert isinstance(failure, CleaningFailure)
    assert failure.errno == 2


def test_a_child_that_was_killed_says_so(tmp_path: Path) -> None:
    job = job_for(dirty_log(tmp_path), NOW_MS, LIMITS._replace(bytes_per_second=100))

    async def work(child: CleanerChild) -> None:
        asyncio.get_running_loop().call_later(0.2, os.kill, child.pid, signal.SIGKILL)
        (failure,) = await answers_of(child, job)
        assert isinstance(failure, CleaningFailure)
        assert "-9" in failure.reason
        assert child.was_killed
        assert not child.is_alive

    with_child(work)


def test_a_child_at_work_is_gone_when_it_was_ended(tmp_path: Path) -> None:
    job = job_for(dirty_log(tmp_path), NOW_MS, LIMITS._replace(bytes_per_second=100))

    async def work(child: CleanerChild) -> int:
        asking = asyncio.ensure_future(answers_of(child, job))
        await asyncio.sleep(0.05)
        await child.end()
        await asking
        return child.pid

    pid = with_child(work)
    assert not Path(f"/proc/{pid}").exists()
