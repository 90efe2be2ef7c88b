"""The simulation of the sink finds what it is there to find: each known bug, switched on, breaks an invariant."""

from collections import deque
from functools import partial
from itertools import chain

import pytest
from sink_bugs import BUGS
from sink_run import Simulation, run_seed

LIKELY_SEEDS = (1934, 1160, 532)  # where the rarest of them were found: others are tried when these are not enough
SEEDS = range(3_000)
FOUND = r"lost|twice|stuck|was decided and then|left open|decided in epoch|not settled|not come to an end|decision is"


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_is_found(bug: type[Simulation]) -> None:
    with pytest.raises(AssertionError, match=FOUND):
        deque(map(partial(run_seed, simulation_class=bug), chain(LIKELY_SEEDS, SEEDS)), maxlen=0)
