"""The simulation finds what it is there to find: each known bug, switched on, breaks an invariant."""

from collections import deque

import pytest
from producer_bugs import BUGS, Bug
from producer_run import run_seed

SEEDS = (5, 7, 9, 13, 28, 225, *range(1500))  # those first that find something today


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    with pytest.raises(AssertionError, match=r"acknowledged|once|in order|identified|all or nothing|ended|alive"):
        deque(map(run_seed, SEEDS))
