"""Queries whose Python processes come up too slowly are started again."""

from typing import Any

import pytest

from sskafka.pipelines.runner.patience import settled

TOO_SLOW = Exception("[x] Python worker failed to connect back. SQLSTATE: 0")


class Query:
    """As much of a streaming query as is asked for: some looks while it starts, and then how it went."""

    def __init__(self, looks: int = 0, failure: Exception | None = None) -> None:
        self._looks = looks
        self._failure = failure
        self.isActive = True

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
        (Query(failure=TOO_SLOW), [Query(failure=TOO_SLOW)] * 3, 3),
    ],
)
def test_what_failed_for_being_slow_is_started_again(first: Any, later: list[Any], starts: int) -> None:
    left = list(later)
    query = settled(first, lambda: left.pop(0))
    assert len(later) - len(left) == starts
    assert query is (later[starts - 1] if starts else first)
