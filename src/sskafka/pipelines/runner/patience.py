"""Spark's Python processes have ten seconds to come up; on a busy machine some are too slow, and are started again."""

import time
from collections.abc import Callable
from typing import TypeVar

from pyspark.sql.streaming.query import StreamingQuery

T = TypeVar("T")

_START_ATTEMPTS = 3
_START_POLL_S = 0.1
_TOO_SLOW = ("Python worker failed to connect back", "waiting for the Python worker to connect back")


def patiently(build: Callable[[], T]) -> T:
    """What Spark makes with Python processes of its own: those that came up too slowly are started again."""
    for _ in range(_START_ATTEMPTS - 1):
        try:
            return build()
        except Exception as error:
            if not _is_too_slow(error):
                raise
    return build()


def _is_too_slow(error: Exception | None) -> bool:
    return any(text in str(error) for text in _TOO_SLOW)


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
        if not _is_too_slow(query.exception()):
            break
        query = patiently(start)
    return query
