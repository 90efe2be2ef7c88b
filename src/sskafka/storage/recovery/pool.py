"""Threads that recover logs after an unclean shutdown: `num.recovery.threads.per.data.dir` for each log directory.

    submit     recover the files of a log in a thread of its directory
    take       return the result once; waits until it is there
    close      start nothing new, wait for running recoveries, and close files that nobody took

A thread reads and truncates the files of one log and touches nothing else; other threads sync the files afterwards,
because the syncs of many logs side by side share the commits of the file system (runtime/sync_threads.py). The caller
of `take` creates the log. After an error in a directory its other logs are not recovered, while the other directories
continue.
"""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from sskafka.model.ids import TopicPartition
from sskafka.runtime.sync_threads import new_sync_threads
from sskafka.storage.log_directory import LogDirHealth
from sskafka.storage.recovery.opening import RecoveredFiles

_log = logging.getLogger(__name__)

PROGRESS_LINES_MAX = 20
"""Approximate limit for each directory, however many logs it has."""

Work = Callable[[], RecoveredFiles]


class _Directory:
    """The threads of one log directory and their progress."""

    def __init__(self, health: LogDirHealth, threads: int) -> None:
        self._verifying = ThreadPoolExecutor(threads, thread_name_prefix="sskafka-recovery")
        self._syncing = new_sync_threads()
        self._health = health
        self._lock = threading.Lock()
        self._done = 0
        self._total = 0

    def submit(self, work: Work) -> Future[RecoveredFiles]:
        with self._lock:
            self._total += 1
        result: Future[RecoveredFiles] = Future()
        self._verifying.submit(self._step, result, lambda: self._verify(work, result))
        return result

    def close(self) -> None:
        """Start nothing new, and wait for what runs."""
        self._verifying.shutdown(cancel_futures=True)
        self._syncing.shutdown(cancel_futures=True)

    def _step(self, result: Future[RecoveredFiles], step: Callable[[], None]) -> None:
        """Do one step. An error is the result of the recovery."""
        try:
            self._health.check_online()
            step()
        except OSError as error:
            result.set_exception(self._health.sync_failed(error))
        except BaseException as error:
            result.set_exception(error)

    def _verify(self, work: Work, result: Future[RecoveredFiles]) -> None:
        recovered = work()
        self._syncing.submit(self._step, result, lambda: self._sync(recovered, result))

    def _sync(self, recovered: RecoveredFiles, result: Future[RecoveredFiles]) -> None:
        recovered.sync()
        with self._lock:
            self._done += 1
            done, total = self._done, self._total
        if done == total or done % max(1, total // PROGRESS_LINES_MAX) == 0:
            _log.info("recovered %d of %d logs in %s", done, total, self._health.path)
        result.set_result(recovered)


class RecoveryPool:
    def __init__(self) -> None:
        self._directories: dict[LogDirHealth, _Directory] = {}
        self._recovered: dict[TopicPartition, Future[RecoveredFiles]] = {}

    def __contains__(self, topic_partition: TopicPartition) -> bool:
        return topic_partition in self._recovered

    def submit_all(
        self, works: dict[TopicPartition, tuple[LogDirHealth, Work]], threads: int, done: Callable[[], None]
    ) -> None:
        """Recover logs in `threads` threads for each directory. `done` is called from any thread when all are
        recovered."""
        if not works:
            done()
            return
        countdown = _Countdown(len(works), done)
        for topic_partition, (health, work) in works.items():
            if health not in self._directories:
                self._directories[health] = _Directory(health, threads)
            future = self._directories[health].submit(work)
            self._recovered[topic_partition] = future
            future.add_done_callback(countdown.one_is_done)

    def take(self, topic_partition: TopicPartition) -> RecoveredFiles | None:
        """Return the result, or None if the log was not submitted. Raise the error that the recovery failed with."""
        future = self._recovered.pop(topic_partition, None)
        return future.result() if future is not None else None

    def close(self) -> None:
        for directory in self._directories.values():
            directory.close()
        self._directories.clear()
        for future in self._recovered.values():
            if future.done() and future.exception() is None:
                future.result().close()
        self._recovered.clear()


class _Countdown:
    def __init__(self, count: int, done: Callable[[], None]) -> None:
        self._left = count
        self._done = done
        self._lock = threading.Lock()

    def one_is_done(self, _: object) -> None:
        with self._lock:
            self._left -= 1
            is_last = self._left == 0
        if is_last:
            self._done()
