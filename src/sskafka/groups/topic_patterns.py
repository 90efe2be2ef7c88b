"""Subscriptions by regular expression: RE2, whose matching takes time in proportion to the names and no more.

Python's own expressions can be made to run for ever by whoever may subscribe.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from sskafka.model.errors import ErrorCode, KafkaError


def check_pattern(pattern: str) -> None:
    _compiled(pattern)


def matching(pattern: str, names: Iterable[str]) -> frozenset[str]:
    """A pattern means whole names; internal topics are matched too, as in Apache Kafka."""
    compiled = _compiled(pattern)
    return frozenset(name for name in names if compiled.fullmatch(name))


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    import re2  # noqa: PLC0415  loaded by the first who needs it

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        problem = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        text = f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {problem}."
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, text) from error
