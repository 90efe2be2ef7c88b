"""The simulation notices bugs: each known one, switched on alone, ends in a violation within some seeds."""

import pytest
from failover_bugs import KNOWN_BUGS, bug
from failover_run import run_seed

SEEDS = (0, 1, 2, 4, 62, *range(200))  # those first that find something today


@pytest.mark.parametrize("name", KNOWN_BUGS)
def test_known_bug_is_noticed(name: str) -> None:
    with bug(name), pytest.raises(AssertionError, match="FAILOVER_SEED="):
        _run_seeds()


def _run_seeds() -> None:
    for seed in SEEDS:
        run_seed(seed)
