"""The periodic work of the active controller."""

import asyncio
from collections import deque
from types import SimpleNamespace
from typing import Any

from virtual_time import VirtualTime

from sskafka.controller.periodic_tasks import PeriodicTasks
from sskafka.metadata.brokers.sessions import BrokerSessions
from sskafka.metadata.image import ClusterImage
from sskafka.model.settings import Settings


class Controller:
    """Answers each decision with whether there is more to do."""

    def __init__(self, *answers: bool) -> None:
        self._answers = deque(answers)
        self.rounds = 0
        self.is_done = asyncio.Event()

    async def submit(self, decide: Any) -> bool:
        self.rounds += 1
        answer = self._answers.popleft()
        if not self._answers:
            self.is_done.set()
        return answer


def test_leaders_are_rebalanced_step_by_step_without_a_pause() -> None:
    """Three decisions for thousands of partitions; the next check comes an interval later."""

    async def run() -> int:
        overrides = {"leader.imbalance.check.interval.seconds": "1", "metadata.max.idle.interval.ms": "0"}
        settings = Settings.resolve(overrides=overrides)
        controller: Any = Controller(True, True, False)
        of_clients = SimpleNamespace(rebalance_leaders=None)
        parts: Any = SimpleNamespace(image=ClusterImage(), of_clients=of_clients)
        tasks = PeriodicTasks(controller, parts, parts, BrokerSessions(6000), settings, VirtualTime())
        tasks.begin()
        try:
            await asyncio.wait_for(controller.is_done.wait(), 1.9)
            await asyncio.sleep(0.05)
            return int(controller.rounds)
        finally:
            tasks.end()

    assert asyncio.run(run()) == 3
