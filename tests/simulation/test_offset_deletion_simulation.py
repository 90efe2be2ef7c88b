"""Offsets under deletions of their groups and topics in the background, seed after seed.

pytest tests/simulation/test_offset_deletion_simulation.py                 200 seeds
SEEDS=5000 pytest -n 2 tests/simulation/test_offset_deletion_...           more of them
SEED=123 pytest tests/simulation/test_offset_deletion_simulation.py        one, exactly as it was
"""

import os
from collections import deque

import pytest
from offset_deletion_bugs import BUGS, Bug
from offset_deletion_life import run_seed

SEEDS = [int(os.environ["SEED"])] if "SEED" in os.environ else range(min(int(os.environ.get("SEEDS", "200")), 5_000))


@pytest.mark.parametrize("seed", SEEDS)
def test_deletions_look_as_if_they_happened_at_once(seed: int) -> None:
    run_seed(seed)


def test_runs_are_not_idle() -> None:
    assert sum(run_seed(seed).deleted for seed in range(20)) > 60


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_known_bugs_are_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    with pytest.raises(AssertionError, match=r"offset|deletion|requester"):
        deque(map(run_seed, range(200)))
