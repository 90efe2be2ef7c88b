"""Queries whose Python processes come up too slowly are started again."""

from typing import Any

import pytest

from sskafka.pipelines.runner.retries import Restarts, settled

TIMED_OUT = Exception(
    "[x] Traceback (most recent call last):\n"
    "sskafka.pipelines.connector.errors.DriverTransactionEndedError: batch 7 of query 'q' was not committed"
)
UNDECIDED = Exception("sskafka.pipelines.connector.errors.NotDecidedError: batch 7 of query 'q' was not committed")
TOO_SLOW = Exception("[x] Python worker failed to connect back. SQLSTATE: 0")


class Query:
    """As much of a streaming query as is asked for: some looks while it starts, and then how it went."""

    def __init__(self, looks: int = 0, failure: Exception | None = None) -> None:
        self._looks = looks
        self._failure = failure
        self.isActive = True
        self.name = "orders.parquet"

    @property
    def status(self) -> dict[str, str]:
        self._looks -= 1
        return {"message": "Initializing sources" if self._looks >= 0 else "Waiting for data to arrive"}

    def exception(self) -> Exception | None:
        return self._failure


@pytest.mark.parametrize(
    ("first", "later", "starts"),
    [
        (Query(looks=2), [], 0),
        (Query(failure=TOO_SLOW), [Query()], 1),
        (Query(failure=Exception("no such topic")), [], 0),
        (Query(failure=TIMED_OUT), [Query()], 1),
        (Query(failure=UNDECIDED), [], 0),
        (Query(failure=TOO_SLOW), [Query(failure=TOO_SLOW)] * 3, 3),
    ],
)
def test_what_failed_for_being_slow_is_started_again(first: Any, later: list[Any], starts: int) -> None:
    left = list(later)
    query = settled(first, lambda: left.pop(0))
    assert len(later) - len(left) == starts
    assert query is (later[starts - 1] if starts else first)


def test_a_query_that_fails_for_nothing_of_its_own_goes_on() -> None:
    well, places = Query(), []

    def start_again(place: int) -> Any:
        places.append(place)
        return Query()

    queries: list[Any] = [well, Query(failure=TOO_SLOW), Query(failure=Exception("no such column"))]
    restarts = Restarts(start_again)
    restarts.restart_failed(queries)
    assert places == [1]
    assert queries[0] is well
    assert [query.exception() is None for query in queries] == [True, True, False]


def test_what_fails_again_and_again_has_failed() -> None:
    queries: list[Any] = [Query(failure=TOO_SLOW)]
    restarts = Restarts(lambda _: Query(failure=TOO_SLOW))  # type: ignore[arg-type, return-value]
    for _ in range(10):
        before = queries[0]
        restarts.restart_failed(queries)
    assert queries[0] is before
    assert queries[0].exception() is TOO_SLOW
