"""Retries for failures that a new attempt may not have: sinks drop what they already have of a batch.

Spark's Python processes have ten seconds to start; on a busy machine some are too slow. A process that is killed, or
crashes, ends its query on a local master, where Spark runs no task a second time. A batch that was in the driver's
transaction when the brokers aborted it is written again in transactions of its tasks. Batches whose tasks' own
transactions timed out are not tried again: they would time out again, and the message names the settings to change.
"""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from pyspark.sql.streaming.query import StreamingQuery

from sskafka.pipelines.connector.errors import DriverTransactionEndedError
from sskafka.pipelines.runner.errors import explained, has_lost_process

T = TypeVar("T")

logger = logging.getLogger(__name__)

_RESTARTS_MAX = 3
_START_ATTEMPTS = 3
_START_POLL_S = 0.1
_PASSING = (
    "Python worker failed to connect back",
    "waiting for the Python worker to connect back",
    f"{DriverTransactionEndedError.__module__}.{DriverTransactionEndedError.__name__}: ",
)


def with_retries(build: Callable[[], T]) -> T:
    """Call `build`, which makes Spark start Python processes, and retry if one is lost or starts too slowly."""
    for _ in range(_START_ATTEMPTS - 1):
        try:
            return build()
        except Exception as error:
            if not is_transient(error):
                raise
    return build()


def is_transient(error: Exception | None) -> bool:
    return error is not None and (any(text in str(error) for text in _PASSING) or has_lost_process(error))


def start_with_retries(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """Start a query, and return it when its source has been found."""
    return settled(with_retries(start), start)


def settled(query: StreamingQuery, start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """Return a query that was started together with others, when its source has been found.

    On a busy machine the Python processes of several queries are too slow if they start at once. A query that failed
    only for this reason has done nothing yet, and is started again, alone."""
    for _ in range(_START_ATTEMPTS):
        while query.isActive and "nitializing" in query.status["message"]:
            time.sleep(_START_POLL_S)
        if not is_transient(query.exception()):
            break
        query = with_retries(start)
    return query


class Restarts:
    """Restarts queries that failed for a reason that passes, up to a total number in a run."""

    def __init__(self, start_again: Callable[[int], StreamingQuery]) -> None:
        """`start_again` is called with the index of the query."""
        self._start_again = start_again
        self._left = _RESTARTS_MAX

    def restart_failed(self, queries: list[StreamingQuery]) -> None:
        for index, query in enumerate(queries):
            failure = query.exception()
            if self._left and failure is not None and is_transient(failure):
                self._left -= 1
                logger.warning("the query %s is restarted: %s", query.name, explained(failure))
                queries[index] = self._start_again(index)
