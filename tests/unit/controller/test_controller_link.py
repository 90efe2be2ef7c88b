import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from sskafka.client.broker_link import Address, BrokerLink, ConnectionOptions
from sskafka.controller.active_controller import NotControllerError
from sskafka.controller.link import ControllerLink
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.runtime.clock import SystemClock
from sskafka.wire.messages.create_topics import CreateTopicsRequest

REQUEST = CreateTopicsRequest()


class Leaders:
    """`coming`: who leads after each wait for a change; the last one stays."""

    def __init__(self, leader_id: int, *coming: int) -> None:
        self.leader_id = leader_id
        self._coming = list(coming)

    async def leader_changed(self, timeout_s: float) -> None:
        await asyncio.sleep(0.001)
        if self._coming:
            self.leader_id = self._coming.pop(0)


def link(leaders: Leaders, decide: Callable[[Any, Any], Any]) -> ControllerLink:
    def nowhere(node_id: int) -> BrokerLink:
        return BrokerLink(lambda: Address("127.0.0.1", 1), ConnectionOptions())

    return ControllerLink(1, leaders, decide, nowhere, SystemClock())


def test_what_this_node_leads_is_decided_here() -> None:
    async def decide(request: Any, caller: Any) -> str:
        return "decided"

    assert asyncio.run(link(Leaders(1), decide).ask(REQUEST, 1000)) == "decided"


def test_it_asks_again_until_there_is_a_controller() -> None:
    unreachable = 2
    leaders = Leaders(-1, -1, unreachable, unreachable, 1)
    refusals = iter(range(3))

    async def decide(request: Any, caller: Any) -> str:
        if next(refusals, None) is not None:
            raise NotControllerError("not yet")
        return "decided"

    assert asyncio.run(link(leaders, decide).ask(REQUEST, 5000)) == "decided"
    assert next(refusals, None) is None


@pytest.mark.parametrize(("leader_id", "reason"), [(-1, "no controller is elected"), (2, "connection refused")])
def test_it_says_why_there_was_no_answer_in_time(leader_id: int, reason: str) -> None:
    async def decide(request: Any, caller: Any) -> str:
        raise AssertionError("this node does not lead")

    with pytest.raises(KafkaError, match=reason) as error:
        asyncio.run(link(Leaders(leader_id), decide).ask(REQUEST, 100))
    assert error.value.code is ErrorCode.REQUEST_TIMED_OUT


def test_a_decision_that_no_majority_confirms_is_given_up_in_time() -> None:
    async def decide(request: Any, caller: Any) -> None:
        await asyncio.sleep(60)

    with pytest.raises(KafkaError, match="no majority has confirmed"):
        asyncio.run(link(Leaders(1), decide).ask(REQUEST, 50))


def test_other_errors_are_the_askers() -> None:
    async def decide(request: Any, caller: Any) -> None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "no")

    with pytest.raises(KafkaError) as error:
        asyncio.run(link(Leaders(1), decide).ask(REQUEST, 1000))
    assert error.value.code is ErrorCode.INVALID_REQUEST
