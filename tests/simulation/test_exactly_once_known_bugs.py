"""The simulation finds what it is there to find: each known bug, switched on, breaks an invariant."""

from collections import deque

import pytest
from exactly_once_bugs import BUGS, Bug
from exactly_once_run import run_seed

SEEDS = range(300)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    with pytest.raises(AssertionError, match=r"refused|hangs|torn|was to be|twice|get nowhere|counts|offset"):
        deque(map(run_seed, SEEDS), maxlen=0)
