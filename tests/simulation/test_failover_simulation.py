"""Controllers and brokers that die, pause and are cut off, one seed after the other.

FAILOVER_SEEDS=1000 pytest tests/simulation/test_failover_simulation.py   more of them
FAILOVER_SEED=123 pytest tests/simulation/test_failover_simulation.py     one, exactly as it was
"""

import pytest
from failover_run import FailoverRun, run_seed
from seeds import name_of, seed_groups
from virtual_loop import run_virtually


@pytest.mark.parametrize("seeds", seed_groups("FAILOVER_", 60, 10), ids=name_of)
def test_brokers_that_die_are_fenced_at_once_and_others_are_not(seeds: range) -> None:
    for seed in seeds:
        run_seed(seed)


def test_a_seed_replays_exactly() -> None:
    assert told_by(5) == told_by(5)


def told_by(seed: int) -> list[tuple[float, int, int, bool]]:
    run = FailoverRun(seed)
    run_virtually(run.run())
    return run.story
