"""Faults: each strikes once and says what it hit; what it broke is mended by itself some seconds later.

A broker is hit for the part it plays: the coordinator of a query's transactions, the leader of the topic with the
sinks' decisions, the controller, or any. Faults overlap, because the mending of one does not hold up the next.
"""

import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from cluster_network import TESTS, Network
from cluster_processes import ClusterProcesses
from operating import QUERIES, Operator, output
from process_session import ProcessSession

from sskafka.client.config import ConnectionConfig
from sskafka.client.coordinators import CoordinatorType, coordinator_of
from sskafka.client.errors import ClientError
from sskafka.model.errors import KafkaError
from sskafka.pipelines.connector.planning import ClusterSession

CONTROL_TOPIC = "sskafka-spark-commits"
POLL_S = 0.1
PROGRESS_WITHIN_S = 300
ENDS_WITHIN_S = 240
SHORT_S, BEYOND_SESSIONS_S, BEYOND_REQUESTS_S = (0.2, 2.0), (4.0, 10.0), (32.0, 45.0)
"""Pauses: shorter than every timeout; longer than a broker's session (3 s); longer than a request may take (30 s)."""
PAUSES = (SHORT_S,) * 5 + (BEYOND_SESSIONS_S,) * 5 + (BEYOND_REQUESTS_S,) * 2


class Mending(NamedTuple):
    at: float
    work: Callable[[], None]


@dataclass(slots=True)
class Scene:
    """Everything that faults can hit, and what is still broken."""

    brokers: ClusterProcesses
    network: Network | None
    operator: Operator
    chance: random.Random
    down: set[int] = field(default_factory=set)
    """Brokers that are killed, paused or cut off."""
    _mendings: list[Mending] = field(default_factory=list)

    # -- time passes

    def pause(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.look()
            time.sleep(POLL_S)

    def wait_until(self, condition: Callable[[], bool], what: str, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline, f"stuck: {what}: not within {timeout_s:.0f} s"
            self.look()
            time.sleep(POLL_S)

    def wait_for_progress(self) -> None:
        """Until every query has done another batch."""
        before = self.operator.batches_done()

        def has_progressed() -> bool:
            return all(now > then for then, now in zip(before, self.operator.batches_done(), strict=True))

        self.wait_until(has_progressed, f"every query ends a batch behind {before}", PROGRESS_WITHIN_S)

    def look(self) -> None:
        """Mend what is due, and start the pipeline again if its run has ended."""
        due = [mending for mending in self._mendings if mending.at <= time.monotonic()]
        self._mendings = [mending for mending in self._mendings if mending not in due]
        for mending in due:
            mending.work()
        self.operator.look()

    def mend_everything(self) -> None:
        self._mendings = [mending._replace(at=0) for mending in self._mendings]
        self.look()
        self.brokers.wait_for_brokers(self.brokers.node_ids, timeout_s=120)

    def later(self, seconds: float, work: Callable[[], None]) -> None:
        self._mendings.append(Mending(time.monotonic() + seconds, work))

    # -- brokers by the part they play

    def brokers_up(self) -> list[int]:
        """Without those that were started a moment ago and have not said which process they are."""
        return [node for node in self.brokers.running() if node not in self.down]

    def choose_broker(self) -> tuple[int, str]:
        """One that is up, and why it was chosen."""
        up = self.brokers_up()
        roles = self.chance.sample(list(ROLES), k=len(ROLES))
        for role in roles:
            node = self._broker_that(role)
            if node in up:
                return node, f"broker {node}, {role}"
        return self.chance.choice(up), "any broker"

    def _broker_that(self, role: str) -> int | None:
        try:
            return ROLES[role](self)
        except (AssertionError, OSError, ClientError, KafkaError, KeyError):
            return None  # while others are down nobody may know

    def coordinator(self, kind: CoordinatorType, key: str | None) -> int | None:
        if key is None:
            return None
        with ClusterSession(self.brokers.bootstrap, ConnectionConfig(request_timeout_ms=3_000)) as session:
            return session.run(coordinator_of(session.cluster, kind, key))

    def leader(self, topic: str) -> int:
        return self.brokers.partitions(topic)[0].leader


ROLES: dict[str, Callable[[Scene], int | None]] = {
    "coordinator of a driver's transactions": lambda scene: scene.coordinator(
        CoordinatorType.TRANSACTION, scene.operator.driver_id(scene.chance.choice(QUERIES))
    ),
    "coordinator of the group with the progress": lambda scene: scene.coordinator(
        CoordinatorType.GROUP, f"{scene.operator.pipeline.name}.{scene.chance.choice(QUERIES)}"
    ),
    "leader of the decisions": lambda scene: scene.leader(CONTROL_TOPIC),
    "leader of the output": lambda scene: scene.leader(output(scene.chance.choice(QUERIES))),
    "controller": lambda scene: scene.brokers.controller(),
    "any": lambda scene: scene.chance.choice(scene.brokers.node_ids),
}


# -- faults of Spark's processes


def driver_is_killed(scene: Scene) -> str:
    scene.operator.run.kill_driver()
    return "the driver's Python"


def java_is_killed(scene: Scene) -> str:
    return _signal_one(scene, scene.operator.run.java(), signal.SIGKILL, "Java")


def worker_is_killed(scene: Scene) -> str:
    return _signal_one(scene, scene.operator.run.workers(), signal.SIGKILL, "a Python worker")


def everything_is_killed(scene: Scene) -> str:
    scene.operator.run.send(signal.SIGKILL)
    return "driver, Java and workers"


def driver_is_paused(scene: Scene) -> str:
    return _pause_one(scene, [scene.operator.run.process.pid], "the driver's Python")


def java_is_paused(scene: Scene) -> str:
    return _pause_one(scene, scene.operator.run.java(), "Java")


def worker_is_paused(scene: Scene) -> str:
    return _pause_one(scene, scene.operator.run.workers(), "a Python worker")


def run_is_replaced_in_its_sleep(scene: Scene) -> str:
    """The operator takes a paused run for dead. It wakes up beside the newer one, and has to end by itself."""
    sleeping, seconds = scene.operator.run, scene.chance.uniform(*BEYOND_SESSIONS_S)
    sleeping.send(signal.SIGSTOP)
    scene.operator.start()
    if scene.chance.random() < 0.5:
        scene.wait_for_progress()
    else:
        scene.pause(seconds)
    sleeping.send(signal.SIGCONT)
    scene.wait_until(lambda: sleeping.process.poll() is not None, "the run that was replaced ends", ENDS_WITHIN_S)
    scene.operator.note_end(sleeping)
    return "a run that another one replaced"


def _signal_one(scene: Scene, pids: list[int], number: signal.Signals, what: str) -> str:
    if not pids:
        return f"nobody: there is no {what} yet"
    with suppress(ProcessLookupError):
        os.kill(scene.chance.choice(sorted(pids)), number)
    return what


def _pause_one(scene: Scene, pids: list[int], what: str) -> str:
    if not pids:
        return f"nobody: there is no {what} yet"
    run, pid, seconds = scene.operator.run, scene.chance.choice(sorted(pids)), _pause_seconds(scene)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
    scene.later(seconds, lambda: _resume(run, pid))
    return f"{what} for {seconds:.1f} s"


def _resume(run: ProcessSession, pid: int) -> None:
    if pid in run.members():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _pause_seconds(scene: Scene) -> float:
    return scene.chance.uniform(*scene.chance.choice(PAUSES))


# -- faults of brokers


def broker_is_killed(scene: Scene) -> str:
    node, who = scene.choose_broker()
    seconds = scene.chance.uniform(*scene.chance.choice((SHORT_S, BEYOND_SESSIONS_S)))
    scene.brokers.kill(node)
    _mend_broker(scene, node, seconds, lambda: scene.brokers.start_broker(node, wait=False))
    return f"{who}, away for {seconds:.1f} s"


def broker_is_paused(scene: Scene) -> str:
    node, who = scene.choose_broker()
    seconds = _pause_seconds(scene)
    scene.brokers.send(node, signal.SIGSTOP)
    _mend_broker(scene, node, seconds, lambda: scene.brokers.send(node, signal.SIGCONT))
    return f"{who} for {seconds:.1f} s"


def broker_is_cut_off_from_brokers(scene: Scene) -> str:
    others = scene.brokers.node_ids
    return _cut_off(scene, lambda node: [other for other in others if other != node], "the other brokers")


def broker_is_cut_off_from_clients(scene: Scene) -> str:
    return _cut_off(scene, lambda _: [TESTS], "the clients")


def _cut_off(scene: Scene, others: Callable[[int], list[int]], whom: str) -> str:
    network = scene.network
    assert network is not None
    node, who = scene.choose_broker()
    seconds, is_deaf = _pause_seconds(scene), scene.chance.random() < 0.5
    is_mute = not is_deaf or scene.chance.random() < 0.5
    if is_deaf:
        network.cut(others(node), [node])
    if is_mute:
        network.cut([node], others(node))
    _mend_broker(scene, node, seconds, lambda: network.heal(node))
    how = "both ways" if is_deaf and is_mute else "in" if is_deaf else "out"
    return f"{who} from {whom} ({how}) for {seconds:.1f} s"


def _mend_broker(scene: Scene, node: int, seconds: float, work: Callable[[], None]) -> None:
    scene.down.add(node)

    def mend() -> None:
        work()
        scene.down.discard(node)

    scene.later(seconds, mend)


Strike = Callable[[Scene], str]
SPARK_FAULTS: tuple[Strike, ...] = (
    driver_is_killed,
    java_is_killed,
    worker_is_killed,
    everything_is_killed,
    driver_is_paused,
    java_is_paused,
    worker_is_paused,
    run_is_replaced_in_its_sleep,
)
BROKER_FAULTS: tuple[Strike, ...] = (broker_is_killed, broker_is_paused)
NETWORK_FAULTS: tuple[Strike, ...] = (broker_is_cut_off_from_brokers, broker_is_cut_off_from_clients)


def faults_of(scene: Scene) -> list[Strike]:
    """What may strike now: brokers as often as Spark, and never the last one that is up."""
    chosen = list(SPARK_FAULTS)
    if len(scene.brokers_up()) > 1:
        on_brokers = [*BROKER_FAULTS, *(NETWORK_FAULTS if scene.network is not None else ())]
        chosen += on_brokers * (len(SPARK_FAULTS) // len(on_brokers))
    return chosen
