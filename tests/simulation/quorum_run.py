"""One seeded life of a quorum with everything that a node runs on: driver, log, disk, controller, snapshots, journal.

Nodes crash and lose what they did not sync, are cut off and come back, while topics are created. Whatever was answered
must be there in the end, on every node, and no two nodes may ever have told different stories.
"""

import asyncio
from random import Random

from quorums import Quorum, register_broker
from virtual_loop import run_virtually

from sskafka.controller.control_plane import ControlPlane
from sskafka.model.errors import KafkaError
from sskafka.storage.disk import read_file
from sskafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

SETTINGS = {
    "metadata.log.dir": "/metadata",
    "metadata.log.max.record.bytes.between.snapshots": "1500",
    "metadata.max.retention.bytes": "4000",
}
JOURNAL = "/metadata/__cluster_metadata.log"
STEPS = 60


class QuorumRun:
    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        count = self._random.choice((3, 3, 5))
        self._quorum = Quorum(count, self._random.choice((0, 1)), SETTINGS, seed)
        self._answered: set[str] = set()
        self._told: dict[int, str] = {}
        self._leaders: dict[int, int] = {}
        self._names = 0

    async def run(self) -> None:
        quorum, random = self._quorum, self._random
        quorum.start()
        for _ in range(STEPS):
            await asyncio.sleep(random.expovariate(2.0))
            self._one_event()
            await self._create()
            self._check()
        await self._recover()

    def _one_event(self) -> None:
        quorum, random = self._quorum, self._random
        running, down = list(quorum.planes), [node for node in quorum.node_ids if node not in quorum.planes]
        match random.choice(("crash", "start", "cut", "heal", "nothing")):
            case "crash" if running:
                quorum.crash(random.choice(running))
            case "start" if down:
                quorum.start(random.choice(down))
            case "cut":
                quorum.cut_off = {random.choice(quorum.node_ids)}
            case "heal":
                quorum.cut_off = set()
            case _:
                pass

    async def _create(self) -> None:
        """At whoever believes to be the controller; it may be wrong."""
        for plane in list(self._quorum.planes.values()):
            if plane.controller.is_active:
                self._names += 1
                name = f"t{self._names}"
                try:
                    async with asyncio.timeout(self._random.random()):
                        if 1 not in plane.committed.image.brokers:
                            await register_broker(plane)
                        response = await plane.decide(CreateTopicsRequest([CreatableTopic(name, 1, 1)]))
                except (KafkaError, TimeoutError):
                    continue  # perhaps it happened, perhaps not
                if response.topics[0].error_code == 0:
                    self._answered.add(name)

    def _check(self) -> None:
        assert not self._quorum.failures, self._quorum.failures
        for plane in self._quorum.planes.values():
            self._check_story(plane)
            if plane.leader_id == plane.node_id:
                leader_id = self._leaders.setdefault(plane.leader_epoch, plane.node_id)
                assert leader_id == plane.node_id, f"two leaders of epoch {plane.leader_epoch}"

    def _check_story(self, plane: ControlPlane) -> None:
        """What was committed at an offset is the same for everybody and for ever."""
        image = plane.committed.image
        story = ",".join(sorted(image.topics_by_name))
        known = self._told.setdefault(image.next_offset, story)
        assert known == story, f"node {plane.node_id} tells of offset {image.next_offset} what others do not"

    async def _recover(self) -> None:
        quorum = self._quorum
        quorum.cut_off = set()
        quorum.start(*(node for node in quorum.node_ids if node not in quorum.planes))
        await quorum.controller()
        await quorum.until(
            lambda: len({plane.committed.next_offset for plane in quorum.planes.values()}) == 1, "all are level"
        )
        self._check()
        for plane in quorum.planes.values():
            missing = self._answered - set(plane.committed.image.topics_by_name)
            assert not missing, f"node {plane.node_id} lost {missing}"
        for node_id in quorum.node_ids:
            lines = read_file(quorum.disks[node_id], JOURNAL).decode().splitlines()
            assert [int(line.split()[0]) for line in lines] == list(range(len(lines)))
        await quorum.stop()


def run_seed(seed: int) -> None:
    run_virtually(QuorumRun(seed).run())
