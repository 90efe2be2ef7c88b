"""The questions that a broker answers on its private socket.

leader         {"known": id}                           -> the id of the active controller, once it is another one
alive          {}                                      -> true: the event loops of the node respond
not_ready      {}                                      -> why clients cannot be served yet; null when they can
                                                          (on a controller: why it decides nothing yet)
elections      {"count": number}                       -> the last elections of the quorum, newest first
samples        {}                                      -> parts: lists of [name, [[label, value]...], value]
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from sskafka.controller.node_control import NodeControl
from sskafka.model.counters import Sample
from sskafka.raft.voters import NO_NODE
from sskafka.servers.local.server import Answer

SAMPLES_PER_TURN = 200  # about a millisecond of the data loop


class NodeAnswers:
    """`samples` returns current values each time it is called."""

    def __init__(
        self, node_id: int, control: NodeControl, samples: Callable[[], Iterator[Sample]], is_broker: bool = True
    ) -> None:
        self._node_id = node_id
        self._is_broker = is_broker
        self._control = control
        self._samples = samples

    def table(self) -> dict[str, Answer]:
        return {
            "leader": self.leader,
            "alive": self.alive,
            "not_ready": self.not_ready,
            "elections": self.elections,
            "samples": self.samples,
        }

    async def leader(self, details: Mapping[str, Any]) -> int:
        return await self._control.leader_other_than(details["known"])

    async def alive(self, details: Mapping[str, Any]) -> bool:
        if not self._is_broker:
            await self._control.turn()
        return True

    async def not_ready(self, details: Mapping[str, Any]) -> str | None:
        if not self._is_broker:
            return "the quorum has no leader" if self._control.leader_id == NO_NODE else None
        broker = self._control.image.brokers.get(self._node_id)
        if broker is None or broker.epoch != self._control.broker_epoch:  # the metadata may be from before a restart
            return "the broker is not registered yet"
        return None if broker.is_active else "the broker is fenced"

    async def elections(self, details: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [election._asdict() for election in await self._control.last_elections(details["count"])]

    async def samples(self, details: Mapping[str, Any]) -> AsyncIterator[list[Sample]]:
        """Yield the samples in slices, so that the event loop serves requests in between."""
        samples = self._samples()
        while part := list(islice(samples, SAMPLES_PER_TURN)):
            yield part
            await asyncio.sleep(0)
