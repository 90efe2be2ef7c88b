"""The simulation finds what it is there to find: each known bug, switched on, breaks an invariant."""

from collections import deque
from itertools import chain

import pytest
from transaction_bugs import BUGS, Bug
from transaction_run import run_seed

LIKELY_SEEDS = (208, 119, 11, 7, 2)  # where the rarest of them were found: others are tried when these are not enough
SEEDS = range(400)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    with pytest.raises(AssertionError, match=r"hangs|torn|was to be|committed twice"):
        deque(map(run_seed, chain(LIKELY_SEEDS, SEEDS)), maxlen=0)
