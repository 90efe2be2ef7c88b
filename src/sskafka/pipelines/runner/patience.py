"""Failures of Spark's own that pass: whoever tries again succeeds, and nothing was done that could be done twice.

Python processes have ten seconds to come up; on a busy machine some are too slow.
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


def patiently(build: Callable[[], T]) -> T:
    """What Spark makes with Python processes of its own: those that came up too slowly are started again."""
    for _ in range(_START_ATTEMPTS - 1):
        try:
            return build()
        except Exception as error:
            if not is_passing(error):
                raise
    return build()


def is_passing(error: Exception | None) -> bool:
    return any(text in str(error) for text in _PASSING)


def start_patiently(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """A query whose source has been found."""
    return settled(patiently(start), start)


def settled(query: StreamingQuery, start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """A query that was started together with others, once its source has been found.

    On a busy machine the Python processes of several queries at once are too slow. A query that failed for that alone
    has done nothing yet, and is started again, by itself."""
    for _ in range(_START_ATTEMPTS):
        while query.isActive and "nitializing" in query.status["message"]:
            time.sleep(_START_POLL_S)
        if not is_passing(query.exception()):
            break
        query = patiently(start)
    return query


class Restarts:
    """Queries that fail in the middle of a run for nothing of theirs are started again, some times altogether."""

    def __init__(self, start_again: Callable[[int], StreamingQuery]) -> None:
        """`start_again` is told the place of the query."""
        self._start_again = start_again
        self._left = _RESTARTS_MAX

    def look_after(self, queries: list[StreamingQuery]) -> None:
        for place, query in enumerate(queries):
            failure = query.exception()
            if self._left and is_passing(failure):
                self._left -= 1
                logger.warning("the query %s is started again: %s", query.name, failure)
                queries[place] = self._start_again(place)
