"""The cleaner as a child process of the broker: jobs come by standard input, answers leave by standard output.

It has no more to do with its broker than these two pipes. When the first one ends, the broker is gone or wants it to
go: it ends at once, in the middle of whatever it does; what it leaves behind is worth nothing. Its work yields to
everybody else's on the machine.
"""

import os
import signal
import sys
import threading
from queue import SimpleQueue
from time import monotonic, sleep
from typing import BinaryIO

from sskafka.records.batch import CorruptBatchError
from sskafka.storage.compaction.cleaning import MapTooSmallError, clean_log
from sskafka.storage.compaction.cleaning_job import CleaningFailure, CleaningJob, decode_job, encode_answer
from sskafka.storage.compaction.io_throttle import IoThrottle
from sskafka.storage.disk import OsDisk
from sskafka.storage.errors import StorageError

NICENESS = 10


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the broker, which ends this process in its own time
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


if __name__ == "__main__":
    main()
