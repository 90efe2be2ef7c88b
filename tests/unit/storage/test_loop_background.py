"""Group commit on a real event loop, with threads and a real disk."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from logs import NOW_MS, TP, append

from sskafka.runtime.background import LoopBackground
from sskafka.storage.disk import OsDisk
from sskafka.storage.flusher import Flusher
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_directory import LogDirHealth
from sskafka.storage.recovery.opening import open_log


@pytest.mark.parametrize("appends", [1, 50])
def test_appends_are_ready_when_their_sync_is_done(tmp_path: Path, appends: int) -> None:
    async def scenario() -> None:
        with ThreadPoolExecutor(1) as executor:
            directory = LogDirHealth(OsDisk(), str(tmp_path))
            flusher = Flusher(directory, LoopBackground(asyncio.get_running_loop(), executor))
            config = LogConfig(flush_messages=1)
            log = open_log(directory, str(tmp_path / "orders-0"), TP, config, now_ms=NOW_MS, flusher=flusher)
            is_ready = asyncio.Event()
            log.on_ready = is_ready.set
            for n in range(appends):
                append(log, b"%d" % n)
            assert log.ready_offset == 0
            await asyncio.wait_for(is_ready.wait(), 10)
            assert log.ready_offset == log.recovery_point == appends
            log.close()

    asyncio.run(scenario())


def test_an_error_in_the_thread_comes_back_to_the_loop() -> None:
    async def scenario() -> BaseException | None:
        with ThreadPoolExecutor(1) as executor:
            loop = asyncio.get_running_loop()
            result: asyncio.Future[BaseException | None] = loop.create_future()

            def fail() -> None:
                raise OSError(5, "broken")

            LoopBackground(loop, executor).in_thread(fail, result.set_result)
            return await asyncio.wait_for(result, 10)

    assert isinstance(asyncio.run(scenario()), OSError)
