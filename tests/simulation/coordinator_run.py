"""One simulated life of coordinators: state in a replicated partition, under the faults of `replica_run`.

Numbers are added to by whoever leads the partition, or believes so. Checked is what clients were told
- every total that was answered is answered once: no addition that was acknowledged is lost or counted twice;
- it is larger than every total answered before it was asked for, whoever answered that;
- what the leader says when it is asked is at least what was answered before;
- in the end the leader's state has everything that was acknowledged, and nothing that nobody asked for.
"""

from collections.abc import Callable

from coordinator_lab import LoopWork, Sums
from group_lab import Asked
from replica_brokers import ReplicaBroker
from replica_cluster import TOPIC, ReplicaCluster, Weather
from replica_invariants import require
from replica_run import Run, run_noted

from sskafka.coordination.context import CoordinatorContext, CoordinatorEnvironment, CoordinatorState
from sskafka.coordination.loading import LoadCounters, LoadingTurns
from sskafka.coordination.runtime import CoordinatorRuntime
from sskafka.runtime.timer_wheel import TimerWheel

KEYS = ("a", "b", "c")


class CoordinatedCluster(ReplicaCluster):
    def on_started(self, broker: ReplicaBroker) -> None:
        wheel = TimerWheel(self.time, broker.call_later)
        work = LoopWork(self._slowly(broker))
        environment = CoordinatorEnvironment(self.time, wheel, work, 2_000, LoadingTurns(work), LoadCounters())
        broker.coordinator = CoordinatorRuntime(TOPIC, broker.replicas, Sums, environment)  # type: ignore[attr-defined]
        broker.on_applied = broker.coordinator.metadata_changed  # type: ignore[attr-defined]

    def _slowly(self, broker: ReplicaBroker) -> Callable[[float, Callable[[], None]], None]:
        """A turn of a busy loop takes its time, and much can happen while a log is loaded."""
        return lambda delay_s, call: broker.call_later(delay_s + self.random.uniform(0, 0.03), call)


class CoordinatorRun(Run):
    def __init__(self, seed: int) -> None:
        self.attempts = dict.fromkeys(KEYS, 0)
        self.answered: dict[str, set[int]] = {key: set() for key in KEYS}
        self.reads = 0
        super().__init__(seed)

    def _make_cluster(self, seed: int, weather: Weather, settings: dict[str, str]) -> ReplicaCluster:
        return CoordinatedCluster(seed, weather, settings=settings)

    # -- load

    def _produce(self) -> None:
        """To a broker that has a shard, in charge or not."""
        self._produce_later()
        contexts = [
            found for broker in self.cluster.brokers.values() if (found := self._context_of(broker)) is not None
        ]
        if contexts:
            ask = self._read if self.random.randrange(4) == 0 else self._add
            ask(self.random.choice(contexts), self.random.choice(KEYS))

    def _context_of(self, broker: ReplicaBroker) -> CoordinatorContext[Sums] | None:
        coordinator: CoordinatorRuntime[Sums] = broker.coordinator  # type: ignore[attr-defined]
        return coordinator.contexts.get(0)

    def _add(self, context: CoordinatorContext[Sums], key: str) -> None:
        self.attempts[key] += 1
        before = max(self.answered[key], default=0)

        def told(total: int) -> None:
            require(total not in self.answered[key], "answered once", f"{key} was {total} before")
            require(total > before, "in order", f"{key} is {total}, was {before} before that was asked for")
            self.answered[key].add(total)

        asked = Told(told)
        context.write(lambda shard, _: shard.add(key, 1), asked)

    def _read(self, context: CoordinatorContext[Sums], key: str) -> None:
        """A leader that was deposed without knowing it may say old things; it is not asked."""
        before, leader = max(self.answered[key], default=0), self.cluster.leader()
        if leader is None or self._context_of(leader) is not context:
            return

        def told(total: int) -> None:
            self.reads += 1
            require(total >= before, "read", f"{key} is said to be {total}, was {before}")

        context.read(lambda shard, _: shard.sums.get(key, 0), Told(told))

    def _delete_records(self) -> None:
        """Not in logs that are compacted."""

    # -- afterwards

    def _check_health(self) -> None:
        super()._check_health()
        leader = self.cluster.leader()
        assert leader is not None
        context = self._context_of(leader)
        require(context is not None and context.state is CoordinatorState.ACTIVE, "healed", "nobody is in charge")
        assert context is not None
        for key in KEYS:
            total, highest = context.shard.sums.get(key, 0), max(self.answered[key], default=0)
            require(highest <= total <= self.attempts[key], "kept", f"{key} is {total}, {highest} was answered")


class Told(Asked):
    """Calls back with the answer, unless it is a refusal."""

    def __init__(self, told: Callable[[int], None]) -> None:
        super().__init__()
        self._told = told

    def answer(self, response: int) -> None:
        super().answer(response)
        self._told(response)


def run_seed(seed: int) -> CoordinatorRun:
    return run_noted(CoordinatorRun(seed))
