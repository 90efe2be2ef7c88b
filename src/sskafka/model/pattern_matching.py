"""Match a pattern of a client with many names, in steps, for a bounded CPU time.

Patterns that take much CPU time are refused: a client could create names for which its pattern is slow.
"""

from collections.abc import Callable, Collection

from sskafka.model.computation import Computation
from sskafka.model.pattern import Pattern, SlowPatternError

MATCHING_NS_MAX = 30_000_000
MATCHING_NS_PER_NAME = 10_000
"""CPU time that a pattern may take: a fixed part, and a part for every name. Ordinary ones take 2 to 5 µs a name."""
STEP_NS = 1_000_000
LOOK_NS = 20_000
NAMES_PER_LOOK = 16
"""Names that are matched between two looks at the clock, if that takes no longer than LOOK_NS."""
LOOK_WORK = 200_000
"""Instructions times bytes of a name, which take up to 1 ms, after which the clock is looked at in any case."""

CpuClock = Callable[[], int]
"""Returns the CPU time of the current thread in nanoseconds."""


def matching_names(pattern: Pattern, names: Collection[str], cpu_ns: CpuClock) -> Computation[frozenset[str]]:
    """Return the names that the pattern matches as a whole.

    Raise SlowPatternError if that takes too much CPU time, between two steps, or might take too much for one name."""
    matches = pattern.matches
    left_ns = MATCHING_NS_MAX + MATCHING_NS_PER_NAME * len(names)
    found: set[str] = set()
    began_ns = looked_ns = cpu_ns()
    next_look = look_after = 1
    for number, name in enumerate(names, 1):
        if matches(name):
            found.add(name)
        if number == next_look or pattern.size * len(name) > LOOK_WORK:
            now_ns = cpu_ns()
            look_after = min(NAMES_PER_LOOK, 2 * look_after) if now_ns - looked_ns < LOOK_NS else 1
            next_look, looked_ns = number + look_after, now_ns
            if now_ns - began_ns > left_ns:
                raise SlowPatternError
            if now_ns - began_ns > STEP_NS:
                left_ns -= now_ns - began_ns
                yield
                began_ns = looked_ns = cpu_ns()
    return frozenset(found)
