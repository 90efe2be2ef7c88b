"""The Spark sink's protocol in every order of drivers, tasks, pauses, time-outs, crashes and lost answers.

pytest tests/simulation/test_sink_simulation.py                     2,000 interleavings
make sink-sim                                                       100,000 of them
SINK_SEED=123 pytest tests/simulation/test_sink_simulation.py       one, exactly as it was
"""

import pytest
from seeds import name_of, seed_groups
from sink_run import run_seed


@pytest.mark.parametrize("seeds", seed_groups("SINK_", 2_000, 100), ids=name_of)
def test_nothing_is_lost_doubled_or_stuck(seeds: range) -> None:
    for seed in seeds:
        run_seed(seed)


def test_runs_are_not_idle() -> None:
    """Seeds are worth something only while runs supersede each other and decided parts time out."""
    runs = [run_seed(seed) for seed in range(200)]
    assert sum(len(run.runs) for run in runs) > 800
    assert sum(run.had_partial for run in runs) >= 3
    assert 40 < sum(run.world.two_phase for run in runs) < 160
    assert sum(len(run.world.control) for run in runs) > 2_500
    assert sum(run.handed for run in runs) > 50
    assert sum(run.recoveries for run in runs) > 80
    assert sum(run.is_empty(batch, slot) for run in runs for batch in range(3) for slot in run.slots_of(batch)) > 60
