"""The simulation notices bugs: each known one, switched on alone, ends in a violation within some seeds."""

import pytest
from raft_bugs import KNOWN_BUGS, Bug
from raft_invariants import InvariantError
from raft_run import run_seed

SEEDS_MAX = 400


@pytest.mark.parametrize("name", KNOWN_BUGS)
def test_known_bug_is_noticed(name: str) -> None:
    bug = KNOWN_BUGS[name]
    with pytest.raises(InvariantError, match="replays this run"):
        _run_seeds(bug)


def _run_seeds(bug: Bug) -> None:
    for seed in range(bug.first_seed, bug.first_seed + SEEDS_MAX):
        run_seed(seed, bug.member_class)
