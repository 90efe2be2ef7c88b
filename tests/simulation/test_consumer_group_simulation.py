"""Consumer groups under joins, leaves, crashes, lost answers, new topics and new coordinators, seed after seed.

pytest tests/simulation/test_consumer_group_simulation.py                 100 seeds
SEEDS=5000 pytest -n 2 tests/simulation/test_consumer_group_...           more of them
SEED=123 pytest tests/simulation/test_consumer_group_simulation.py        one, exactly as it was
"""

import os

import pytest
from consumer_group_life import run_seed

SEEDS = [int(os.environ["SEED"])] if "SEED" in os.environ else range(min(int(os.environ.get("SEEDS", "100")), 5_000))


@pytest.mark.parametrize("seed", SEEDS)
def test_no_partition_has_two_readers_and_groups_come_to_rest(seed: int) -> None:
    run_seed(seed, is_sliced=False)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_holds_while_targets_are_computed_in_the_background(seed: int) -> None:
    run_seed(seed, is_sliced=True)


def test_runs_are_not_idle() -> None:
    assert sum(run_seed(seed, is_sliced=True).installed for seed in range(20)) > 60
