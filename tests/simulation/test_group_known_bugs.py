"""The simulation finds what it is there to find: each known bug, switched on, breaks an invariant."""

from collections import deque

import pytest
from group_bugs import BUGS, Bug
from group_run import run_seed

SEEDS = range(60)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    with pytest.raises(AssertionError, match=r"went back|owned|the group is|members are|watches|waits|runs in"):
        deque(map(run_seed, SEEDS))
