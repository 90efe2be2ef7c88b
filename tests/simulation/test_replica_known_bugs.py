"""The simulation finds what it is there to find: each known bug, switched on, breaks an invariant."""

from collections import deque

import pytest
from replica_bugs import BUGS, Bug
from replica_run import run_seed

SEEDS = (0, 1, 2, 4, 25, 52, *range(60))  # those first that find something today


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    with pytest.raises(AssertionError, match=r"in sync|acknowledged|one history|watermarks|healed"):
        deque(map(run_seed, SEEDS))
