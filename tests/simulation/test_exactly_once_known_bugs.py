"""The simulation finds what it is there to find: each known bug, switched on, breaks an invariant."""

from collections import deque
from itertools import chain

import pytest
from exactly_once_bugs import BUGS, Bug
from exactly_once_run import run_seed

LIKELY_SEEDS = (4, 30)  # where they were found: others are tried when these are not enough
SEEDS = range(300)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    with pytest.raises(AssertionError, match=r"refused|hangs|torn|was to be|twice|get nowhere|counts|offset"):
        deque(map(run_seed, chain(LIKELY_SEEDS, SEEDS)), maxlen=0)
