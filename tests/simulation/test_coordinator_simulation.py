"""Coordinators on replicated logs under crashes, lost disks, cuts and delays, one seed after the other.

pytest tests/simulation/test_coordinator_simulation.py                     10 seeds
SHARD_SEEDS=2000 pytest -n 2 tests/simulation/test_coordinator_...         more of them
SHARD_SEED=123 pytest tests/simulation/test_coordinator_simulation.py      one, exactly as it was
"""

from collections import deque
from collections.abc import Callable

import pytest
from coordinator_run import run_seed
from seeds import name_of, seed_groups

from sskafka.coordination.context import CoordinatorContext, CoordinatorState
from sskafka.model.coordination import Completion


@pytest.mark.parametrize("seeds", seed_groups("SHARD_", 10, 5), ids=name_of)
def test_invariants_hold(seeds: range) -> None:
    for seed in seeds:
        run_seed(seed)


def test_runs_are_not_idle() -> None:
    runs = [run_seed(seed) for seed in range(4)]
    assert sum(len(totals) for run in runs for totals in run.answered.values()) > 200
    assert sum(run.reads for run in runs) > 50
    assert sum(run.cluster.controller.state().leader_epoch for run in runs) > 8


# -- the simulation finds what it is there to find


def answers_before_it_is_committed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CoordinatorContext, "_complete_at", lambda context, end_offset, effects: context._complete(effects))


def serves_before_it_has_loaded(patch: pytest.MonkeyPatch) -> None:
    def refused(context: CoordinatorContext[object], completion: Completion) -> bool:  # type: ignore[type-var]
        context.state = CoordinatorState.ACTIVE
        return False

    patch.setattr(CoordinatorContext, "_is_refused", refused)


def keeps_its_state_when_another_has_led(patch: pytest.MonkeyPatch) -> None:
    from sskafka.coordination.runtime import CoordinatorRuntime

    begin = CoordinatorRuntime._begin

    def patched(coordinator: CoordinatorRuntime[object], *where: object) -> None:  # type: ignore[type-var]
        kept = getattr(coordinator, "kept", None)
        begin(coordinator, *where)  # type: ignore[arg-type]
        context = coordinator.contexts.get(0)
        if context is not None and kept is not None:
            context._loader.cancel()
            context.shard, context.state = kept, CoordinatorState.ACTIVE
        if context is not None:
            coordinator.kept = context.shard  # type: ignore[attr-defined]

    patch.setattr(CoordinatorRuntime, "_begin", patched)


BUGS: list[Callable[[pytest.MonkeyPatch], None]] = [
    answers_before_it_is_committed,
    serves_before_it_has_loaded,
    keeps_its_state_when_another_has_led,
]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_known_bugs_are_found(bug: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    with pytest.raises(AssertionError, match=r"answered|in order|read|kept|healed"):
        deque(map(run_seed, range(60)))
