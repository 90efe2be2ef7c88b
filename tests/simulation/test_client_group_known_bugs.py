"""The simulation finds what it is there to find: each known bug, switched on, breaks an invariant."""

from collections import deque
from itertools import repeat

import pytest
from client_group_bugs import BUGS, Bug
from client_group_run import run_client_group

SEEDS = range(60)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: f"{bug[1].__name__}-{bug[0]}")
def test_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    protocol, switch_on = bug
    switch_on(monkeypatch)
    with pytest.raises(
        AssertionError, match=r"is owned by|went back|is next|given up|owned once|other partitions|uneven"
    ):
        deque(map(run_client_group, SEEDS, repeat(protocol)))
