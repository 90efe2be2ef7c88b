"""The log cleaner as a child process of the broker. It reads jobs from standard input and writes answers to standard
output.

These two pipes are its only connection to the broker. When standard input ends, the broker is gone or stops the
cleaner: the process exits at once, even in the middle of a job, and its partial output is useless. It runs with low CPU
and I/O priority.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from time import monotonic, sleep
from typing import BinaryIO

from sskafka.records.batch import CorruptBatchError
from sskafka.storage.compaction.cleaning import MapTooSmallError, clean_log
from sskafka.storage.compaction.cleaning_job import CleaningFailure, CleaningJob, decode_job, encode_answer
from sskafka.storage.disk import OsDisk
from sskafka.storage.errors import StorageError

NICENESS = 10
_CHECK_EVERY_S = 0.1


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is meant for the broker, which stops this process itself
    os.nice(NICENESS)
    jobs: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_read_jobs, args=(jobs,), daemon=True).start()
    while True:
        run(decode_job(jobs.get()), sys.stdout.buffer)


def _read_jobs(jobs: "SimpleQueue[bytes]") -> None:
    for line in sys.stdin.buffer:
        jobs.put(line)
    os._exit(0)


def run(job: CleaningJob, output: BinaryIO) -> None:
    throttle = IoThrottle(job.limits.bytes_per_second, monotonic, sleep)
    try:
        for answer in clean_log(OsDisk(), job, throttle.used):
            output.write(encode_answer(answer))
            output.flush()
    except OSError as error:
        output.write(encode_answer(CleaningFailure(str(error), error.errno)))
    except (CorruptBatchError, MapTooSmallError, StorageError) as error:
        output.write(encode_answer(CleaningFailure(str(error))))
    output.flush()


class IoThrottle:
    """Limits the cleaner's reads and writes to `log.cleaner.io.max.bytes.per.second` on average."""

    def __init__(
        self, bytes_per_second: float, monotonic_s: Callable[[], float], sleep: Callable[[float], None]
    ) -> None:
        self._rate = bytes_per_second
        self._monotonic_s = monotonic_s
        self._sleep = sleep
        self._began_s = monotonic_s()
        self._used_bytes = 0

    def used(self, size_bytes: int) -> None:
        """Account for `size_bytes` and sleep until the average rate is within the limit."""
        self._used_bytes += size_bytes
        if self._used_bytes < self._rate * _CHECK_EVERY_S:
            return
        ahead_s = self._used_bytes / self._rate - (self._monotonic_s() - self._began_s)
        if ahead_s > 0:
            self._sleep(ahead_s)
        self._began_s = self._monotonic_s()
        self._used_bytes = 0


if __name__ == "__main__":
    main()
