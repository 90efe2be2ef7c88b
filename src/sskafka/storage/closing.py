"""Close the logs of a directory: sync many at once, because a sync waits for the disk, and say how far it has come.

A log takes half a dozen syncs, so thousands of logs, one after the other, would take most of a minute. Threads do the
syncs; requests that wait for a sync are answered on the calling thread.
"""

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from sskafka.storage.errors import StorageError
from sskafka.storage.log import Log

_log = logging.getLogger(__name__)

THREADS = 16
FEW_LOGS = 8
"""So few logs are closed without threads."""
PROGRESS_LINES_MAX = 10


def close_logs(logs: Sequence[Log], path: str) -> None:
    """Close the logs, all of them even if some fail. Raise the first error."""
    errors: list[StorageError] = []
    if len(logs) <= FEW_LOGS:
        for log in logs:
            log.close()
        return
    with ThreadPoolExecutor(THREADS, thread_name_prefix="sskafka-closing") as executor:
        syncs = [(log, executor.submit(log.sync_for_closing)) for log in logs if not log.is_closed]
        for number, (log, sync) in enumerate(syncs, start=1):
            try:
                log.finish_closing(sync.result())
            except StorageError as error:
                errors.append(error)
            if number % max(1, len(syncs) // PROGRESS_LINES_MAX) == 0:
                _log.info("closed %d of %d logs in %s", number, len(syncs), path)
    if errors:
        raise errors[0]
