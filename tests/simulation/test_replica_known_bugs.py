"""The simulation finds what it is there to find: each known bug, switched on, breaks an invariant."""

from collections import deque

import pytest
from replica_bugs import BUGS, BUGS_OF_IDEMPOTENCE, Bug
from replica_run import run_seed
from replica_writer_run import run_writer_seed

SEEDS = (0, 1, 2, 4, 21, *range(60))  # those first that find something today
WRITER_SEEDS = (0, 15, 39, *range(60))


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    with pytest.raises(AssertionError, match=r"in sync|acknowledged|one history|watermarks|healed"):
        deque(map(run_seed, SEEDS))


@pytest.mark.parametrize("bug", BUGS_OF_IDEMPOTENCE, ids=lambda bug: bug.__name__)
def test_is_found_by_a_producer_that_repeats_its_batches(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    with pytest.raises(AssertionError, match=r"in sync|acknowledged|one history|watermarks|healed|once and in order"):
        deque(map(run_writer_seed, WRITER_SEEDS))
