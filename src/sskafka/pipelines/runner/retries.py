"""Retries for transient failures of Spark, after which nothing has been done that a retry would repeat.

Spark's Python processes have ten seconds to start; on a busy machine some are too slow.
"""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from pyspark.sql.streaming.query import StreamingQuery

T = TypeVar("T")

logger = logging.getLogger(__name__)

_RESTARTS_MAX = 3
_START_ATTEMPTS = 3
_START_POLL_S = 0.1
_PASSING = (
    "Python worker failed to connect back",
    "waiting for the Python worker to connect back",
)


def with_retries(build: Callable[[], T]) -> T:
    """Call `build`, which makes Spark start Python processes, and retry if they started too slowly."""
    for _ in range(_START_ATTEMPTS - 1):
        try:
            return build()
        except Exception as error:
            if not is_transient(error):
                raise
    return build()


def is_transient(error: Exception | None) -> bool:
    return any(text in str(error) for text in _PASSING)


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
    """Restarts queries whose processes were too slow to start during a run, up to a total number."""

    def __init__(self, start_again: Callable[[int], StreamingQuery]) -> None:
        """`start_again` is called with the index of the query."""
        self._start_again = start_again
        self._left = _RESTARTS_MAX

    def restart_failed(self, queries: list[StreamingQuery]) -> None:
        for index, query in enumerate(queries):
            failure = query.exception()
            if self._left and is_transient(failure):
                self._left -= 1
                logger.warning("the query %s is restarted: %s", query.name, failure)
                queries[index] = self._start_again(index)
