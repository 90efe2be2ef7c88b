"""Take samples of the cluster for the history, as the HTTP server itself, not as one of its clients.

One request to each broker every 5 seconds, and a few for each group that somebody has looked at every 15 seconds. A
sample that cannot be taken is left out: the charts show a gap.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from sskafka.client.broker_load import broker_loads, topic_usage
from sskafka.client.cluster import Cluster
from sskafka.client.errors import ClientError
from sskafka.client.group_lag import lag_of
from sskafka.client.groups import committed_offsets, describe_group
from sskafka.model.errors import KafkaError
from sskafka.records.batch import CorruptBatchError
from sskafka.runtime.clock import Clock
from sskafka.servers.http.history.rates import LoadSample
from sskafka.servers.http.history.series import GROUP_INTERVAL_MS, INTERVAL_MS, History, LagPoint

log = logging.getLogger(__name__)


class HistorySampler:
    def __init__(self, history: History, cluster: Cluster, clock: Clock) -> None:
        self._history = history
        self._cluster = cluster
        self._clock = clock

    async def run(self) -> None:
        """Take samples until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._repeat(INTERVAL_MS, self.sample_load))
            tasks.create_task(self._repeat(GROUP_INTERVAL_MS, self.sample_groups))

    async def _repeat(self, interval_ms: int, sample: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await sample()
            except (KafkaError, ClientError, TimeoutError) as error:
                log.debug("no sample for the history: %s", error)
            await asyncio.sleep(interval_ms / 1000)

    async def sample_load(self) -> None:
        topics = self._history.topics.watched(self._now_ms())
        loads = await broker_loads(self._cluster, topics)
        now_ms = self._now_ms()
        self._history.add(LoadSample(now_ms, loads))
        self._history.add_usages(now_ms, topic_usage(loads.values()))

    async def sample_groups(self) -> None:
        for group_id in self._history.groups.watched(self._now_ms()):
            try:
                self._history.groups.add(group_id, await self._lag(group_id))
            except (KafkaError, ClientError, CorruptBatchError, TimeoutError) as error:
                log.debug("no sample of the group %s: %s", group_id, error)

    async def _lag(self, group_id: str) -> LagPoint:
        described = await describe_group(self._cluster, group_id)
        committed = await committed_offsets(self._cluster, group_id)
        assigned = {partition for member in described.members for partition in member.partitions}
        lags = await lag_of(self._cluster, committed, assigned)
        ages = [lag.lag_ms for lag in lags if lag.lag_ms is not None]
        return LagPoint(self._now_ms(), sum(lag.lag or 0 for lag in lags), max(ages, default=None))

    def _now_ms(self) -> int:
        return int(self._clock.now_ms())
