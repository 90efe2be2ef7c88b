"""One seeded life of a cluster's control plane whose brokers and controllers are killed, paused, cut off and doubled.

What must hold at any time:

    no false fencing     a process that lives is fenced only when no controller has heard of it for a session timeout,
                         whatever its connections do, whether it is paused, cut off, hidden from voters, or well
    one process an id    a second live process does not replace one that is well
    prompt fencing       a process that is killed while all is calm is fenced within moments, also when the active
                         controller dies with it
    recovery             who lives in the end is unfenced

Some runs lie about refused connections. Then live brokers may be fenced, but not again and again, and they recover.
"""

import asyncio
from collections.abc import Callable
from random import Random

from failover_world import Process, World, now_s
from quorums import Quorum
from virtual_loop import run_virtually

from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.model.ids import Uuid

SESSION_S = 6.0
HEARTBEAT_S = 2.5
SLACK_S = 0.01
ERRORS_MAX = 6
"""Each voter may be misled once about a broker, and again after its restart."""
PROMPT_S = 0.5
PROMPT_WITH_ELECTION_S = 2.0
STEADY_S = 3.0
STEPS = 30
SETTINGS = {"metadata.log.dir": "/metadata"}


class FailoverError(AssertionError):
    pass


class FailoverRun:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._random = Random(seed)
        self._quorum = Quorum(3, 0, SETTINGS, seed)
        self._world = World(self._quorum, self._random)
        is_combined = self._random.random() < 0.5
        self._broker_ids = self._quorum.voter_ids if is_combined else [11, 12, 13]
        self._is_combined = is_combined
        self._lies = self._random.random() < 0.25
        self._told: dict[int, tuple[int, Uuid, bool]] = {}
        self._false_fencings: dict[tuple[int, int], int] = {}
        self._told_offset = 0
        self.story: list[tuple[float, int, int, bool]] = []
        """Changes of brokers: when, which one, its epoch, and whether it is fenced."""

    async def run(self) -> None:
        self._start_voters(*self._quorum.voter_ids)
        await self._quorum.controller()
        for broker_id in self._broker_ids:
            hidden = not self._is_combined and self._random.random() < 0.2
            self._world.start(broker_id, is_hidden=hidden)
        await self._all_unfenced()
        if self._lies:
            self._world.false_refusals = self._random.choice((0.05, 0.5, 1.0))
        for _ in range(STEPS):
            await self._one_event()
            await asyncio.sleep(self._random.expovariate(0.7))
            self._require(not self._quorum.failures, str(self._quorum.failures))
        await self._heal()
        await self._quorum.stop()

    # -- events

    async def _one_event(self) -> None:
        events = [self._kill_calmly, self._kill, self._kill_and_restart, self._pause, self._cut, self._break]
        events += [self._kill_controller, self._kill_all_of_a_node, self._double]
        if self._lies:
            events += [self._break] * 6
        await self._random.choice(events)()

    def _some_process(self) -> Process | None:
        living = self._world.living()
        return self._random.choice(living) if living else None

    async def _kill(self) -> None:
        process = self._some_process()
        if process is not None:
            self._end(process)
            self._restart_later(process.broker_id)

    async def _kill_and_restart(self) -> None:
        """So soon that voters may find the next process at the address of the last one."""
        process = self._some_process()
        if process is not None and process.is_well:
            self._end(process)
            await asyncio.sleep(self._random.choice((0.0, 0.001, 0.05, 0.5)))
            self._restart(process.broker_id, process.port)

    async def _pause(self) -> None:
        process = self._some_process()
        if process is not None:
            process.pause()
            asyncio.get_running_loop().call_later(self._random.uniform(0.1, 12), process.resume)

    async def _cut(self) -> None:
        process = self._some_process()
        if process is not None:
            process.is_cut = True
            asyncio.get_running_loop().call_later(self._random.uniform(0.1, 12), self._heal_process, process)

    async def _break(self) -> None:
        """Connections end without reason, as idle ones do."""
        for process in self._world.living():
            process.break_connections()

    async def _kill_controller(self) -> None:
        plane = self._world.controller()
        if plane is not None and len(self._quorum.planes) == 3:
            self._crash(plane.node_id)

    async def _kill_all_of_a_node(self) -> None:
        """The active controller and a broker at once."""
        plane, process = self._world.controller(), self._some_process()
        if plane is not None and process is not None and len(self._quorum.planes) == 3:
            self._end(process)
            if plane.node_id in self._quorum.planes and len(self._quorum.planes) == 3:
                self._crash(plane.node_id)
            self._restart_later(process.broker_id)

    async def _double(self) -> None:
        """A second process with the id of one that lives, elsewhere; it gives up in the end."""
        process = self._some_process()
        if process is not None and not self._lies and len(self._world.living(process.broker_id)) == 1:
            second = self._world.start(process.broker_id, self._random.randrange(20_000, 30_000))
            await asyncio.sleep(self._random.uniform(0.5, 11))
            second.kill()

    async def _kill_calmly(self) -> None:
        """Where nothing else is wrong a dead broker is fenced at once, and its successor is registered at once."""
        self._heal_network()
        self._start_voters(*(node for node in self._quorum.voter_ids if node not in self._quorum.planes))
        for broker_id in self._broker_ids:
            if not self._world.living(broker_id):
                self._restart(broker_id)
        await self._all_unfenced()
        await asyncio.sleep(STEADY_S)
        victim = self._random.choice([item for item in self._world.living() if not item.is_hidden])
        controller = await self._quorum.controller()
        shares = self._is_combined and controller.node_id == victim.broker_id
        takes_controller = shares or (not self._is_combined and self._random.random() < 0.5)
        self._end(victim)
        if takes_controller and not shares:
            self._crash(controller.node_id)
        await self._fenced_soon(victim, PROMPT_WITH_ELECTION_S if takes_controller else PROMPT_S)
        self._restart(victim.broker_id, victim.port)
        await self._unfenced_soon(victim.broker_id, PROMPT_S if not takes_controller else PROMPT_WITH_ELECTION_S)

    async def _fenced_soon(self, victim: Process, seconds: float) -> None:
        def is_fenced() -> bool:
            return all(
                broker.fenced for broker in self._world.brokers() if broker.incarnation_id == victim.incarnation_id
            )

        await self._soon(is_fenced, f"broker {victim.broker_id}, killed at {now_s():.3f}, is fenced", seconds)

    async def _unfenced_soon(self, broker_id: int, seconds: float) -> None:
        def is_unfenced() -> bool:
            return any(broker.id == broker_id and not broker.fenced for broker in self._world.brokers())

        await self._soon(is_unfenced, f"broker {broker_id}, started at {now_s():.3f}, is unfenced", seconds)

    async def _soon(self, condition: Callable[[], bool], what: str, seconds: float) -> None:
        deadline_s = now_s() + seconds
        while not condition():
            self._require(self._lies or now_s() < deadline_s, f"not within {seconds} s: {what}")
            if now_s() > deadline_s:
                return
            await asyncio.sleep(0.005)

    # -- how things happen

    def _end(self, process: Process) -> None:
        """A node that is broker and voter is one process."""
        process.kill()
        shares = self._is_combined and process.broker_id in self._quorum.planes
        if shares and len(self._quorum.planes) == 3:
            self._crash(process.broker_id)

    def _crash(self, node_id: int) -> None:
        self._quorum.crash(node_id)
        for process in self._world.living(node_id) if self._is_combined else ():
            process.kill()
            self._restart_later(node_id)
        delay_s = self._random.uniform(0.5, 5)
        asyncio.get_running_loop().call_later(delay_s, self._start_voters, node_id)

    def _start_voters(self, *node_ids: int) -> None:
        for node_id in node_ids:
            if node_id not in self._quorum.planes:
                self._quorum.start(node_id)
                plane = self._quorum.planes[node_id]
                plane.committed.subscribe(self._published)
                plane.on_leader_change = self._leader_changed

    def _leader_changed(self) -> None:
        for process in self._world.living():
            if process.is_well:
                process.lifecycle.controller_changed()

    def _restart_later(self, broker_id: int) -> None:
        asyncio.get_running_loop().call_later(self._random.uniform(0.01, 8), self._restart, broker_id)

    def _restart(self, broker_id: int, port: int | None = None) -> None:
        if not self._world.living(broker_id):
            self._world.start(broker_id, port)

    def _heal_process(self, process: Process) -> None:
        process.is_cut = False

    def _heal_network(self) -> None:
        """Also at the addresses of processes that died while they were cut off: others may listen there now."""
        for process in self._world.processes:
            process.resume()
            process.is_cut = False

    async def _heal(self) -> None:
        self._world.false_refusals = 0.0
        self._heal_network()
        self._start_voters(*self._quorum.voter_ids)
        for broker_id in self._broker_ids:
            if not self._world.living(broker_id):
                self._restart(broker_id)
        await self._all_unfenced()

    async def _all_unfenced(self) -> None:
        """Restarted processes may have to wait for the session of one that ended without a trace."""

        def holds() -> bool:
            brokers = {broker.id: broker for broker in self._world.brokers()}
            for broker_id in self._broker_ids:
                broker = brokers.get(broker_id)
                living = {item.incarnation_id for item in self._world.living(broker_id)}
                if not living:
                    self._restart(broker_id)
                if broker is None or broker.fenced or broker.incarnation_id not in living:
                    return False
            return True

        await self._quorum.until(holds, f"all brokers are unfenced (seed {self.seed})", timeout_s=60)

    # -- what must hold

    def _published(self, delta: MetadataDelta, image: ClusterImage) -> None:
        """What voters commit is looked at once, by whoever tells of it first."""
        if image.next_offset <= self._told_offset:
            return
        self._told_offset = image.next_offset
        for broker in image.brokers.values():
            before = self._told.get(broker.id)
            self._told[broker.id] = now = broker.epoch, broker.incarnation_id, broker.fenced
            if now != before:
                self.story.append((now_s(), broker.id, broker.epoch, broker.fenced))
            if before is None:
                continue
            epoch, incarnation_id, was_fenced = before
            process = self._world.by_incarnation(incarnation_id)
            if broker.epoch != epoch:
                self._require(
                    process is None or not process.is_well or now_s() - process.heard_s >= SESSION_S or self._lies,
                    f"broker {broker.id}, which is well, was replaced by another process",
                )
            elif broker.fenced and not was_fenced and process is not None and process.is_alive:
                self._fenced_alive(process, epoch)

    def _fenced_alive(self, process: Process, epoch: int) -> None:
        silent_s = now_s() - process.heard_s
        if silent_s >= SESSION_S - SLACK_S:
            return
        self._require(self._lies, f"broker {process.broker_id} lives, was heard of {silent_s:.3f} s ago, and is fenced")
        if process.is_well and silent_s < HEARTBEAT_S:
            key = process.broker_id, epoch
            self._false_fencings[key] = count = self._false_fencings.get(key, 0) + 1
            self._require(count <= ERRORS_MAX, f"broker {process.broker_id} is fenced again and again")

    def _require(self, holds: bool, what: str) -> None:
        if not holds:
            raise FailoverError(f"{what}, at {now_s():.3f} s. FAILOVER_SEED={self.seed} replays this run")


def run_seed(seed: int) -> None:
    run_virtually(FailoverRun(seed).run())
