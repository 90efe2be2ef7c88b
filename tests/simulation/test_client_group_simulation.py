"""Groups of bundled consumers under losses, crashes and new coordinators, one seed after the other.

pytest tests/simulation/test_client_group_simulation.py                        12 seeds for each protocol
CLIENT_GROUP_SEEDS=5000 pytest -n 2 tests/simulation/test_client_group_...     more of them
CLIENT_GROUP_SEED=123 pytest tests/simulation/test_client_group_simulation.py  one, exactly as it was
"""

import pytest
from client_group_run import PROTOCOLS, run_client_group
from seeds import name_of, seed_groups


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seeds", seed_groups("CLIENT_GROUP_", 12, 6), ids=name_of)
def test_invariants_hold(seeds: range, protocol: str) -> None:
    for seed in seeds:
        run_client_group(seed, protocol)


def test_runs_are_not_idle() -> None:
    """Seeds are worth something only while groups rebalance, commit and change coordinators."""
    runs = [run_client_group(seed, protocol) for protocol in PROTOCOLS for seed in range(3)]
    assert sum(run.commits for run in runs) > 1_000
    assert sum(run.assignments for run in runs) > 80
    assert sum(run.failovers for run in runs) > 10
    assert 0 < sum(run.is_gentle for run in runs) < len(runs)
