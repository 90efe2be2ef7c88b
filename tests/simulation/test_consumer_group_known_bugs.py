"""The simulation of consumer groups finds what it is there to find: each known bug breaks an invariant."""

from collections import deque

import pytest
from consumer_group_bugs import BUGS, Bug
from consumer_group_life import run_seed

SEEDS = range(100)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    with pytest.raises(AssertionError, match=r"the target|the group is|read by"):
        deque(run_seed(seed, is_sliced=True) for seed in SEEDS)
