"""What a broker answers on its private socket.

    leader         {"known": id}                           -> the id of the active controller, once it is another one
    vote           {"candidate", "epoch", "up_to_date"}    -> {"granted", "leader_id", "leader_epoch"}
    begin_epoch    {"leader", "epoch"}                     -> {"accepted", "leader_id", "leader_epoch"}
    alive          {}                                      -> true: the data loop turns, and on a controller its own
    not_ready      {}                                      -> why clients cannot be served yet; null when they can
                                                              (on a controller: why it decides nothing yet)
    samples        {}                                      -> parts: lists of [name, [[label, value]...], value]

A vote that is granted here is on the disk before the answer leaves.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from sskafka.model.counters import Sample
from sskafka.quorum.node_control import NodeControl
from sskafka.raft.messages import LabLeaderRequest, LabLeaderResponse, LabVoteRequest, LabVoteResponse
from sskafka.raft.voters import NO_NODE
from sskafka.servers.local.server import Answer

SAMPLES_A_TURN = 200  # about a millisecond of the data loop


class NodeAnswers:
    """`samples` counts anew each time it is called."""

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
            "vote": self.vote,
            "begin_epoch": self.begin_epoch,
            "alive": self.alive,
            "not_ready": self.not_ready,
            "samples": self.samples,
        }

    async def leader(self, details: Mapping[str, Any]) -> int:
        return await self._control.leader_other_than(details["known"])

    async def vote(self, details: Mapping[str, Any]) -> dict[str, Any]:
        request = LabVoteRequest(details["candidate"], details["epoch"], details["up_to_date"])
        response = await self._control.lab_request(request)
        assert isinstance(response, LabVoteResponse)
        return {"granted": response.granted, **_leader(response)}

    async def begin_epoch(self, details: Mapping[str, Any]) -> dict[str, Any]:
        response = await self._control.lab_request(LabLeaderRequest(details["leader"], details["epoch"]))
        assert isinstance(response, LabLeaderResponse)
        return {"accepted": response.accepted, **_leader(response)}

    async def alive(self, details: Mapping[str, Any]) -> bool:
        if not self._is_broker:
            await self._control.turn()
        return True

    async def not_ready(self, details: Mapping[str, Any]) -> str | None:
        if not self._is_broker:
            return "the quorum has no leader" if self._control.leader_id == NO_NODE else None
        broker = self._control.image.brokers.get(self._node_id)
        if broker is None or broker.epoch != self._control.broker_epoch:  # metadata of an earlier life may be there
            return "the broker is not registered yet"
        return None if broker.is_active else "the broker is fenced"

    async def samples(self, details: Mapping[str, Any]) -> AsyncIterator[list[Sample]]:
        """In turns, so that requests are served in between."""
        samples = self._samples()
        while part := list(islice(samples, SAMPLES_A_TURN)):
            yield part
            await asyncio.sleep(0)


def _leader(response: LabVoteResponse | LabLeaderResponse) -> dict[str, Any]:
    return {"leader_id": response.leader_id, "leader_epoch": response.leader_epoch}
