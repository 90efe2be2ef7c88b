"""A node judges the resources of AlterConfigs and IncrementalAlterConfigs before it asks the controller."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import RESOURCE_BROKER, RESOURCE_TOPIC
from sskafka.model.errors import ErrorCode
from sskafka.model.settings import Settings
from sskafka.servers.kafka.authorization import AllowAll
from sskafka.servers.kafka.handlers import configs
from sskafka.servers.kafka.handlers.configs import ConfigHandlers
from sskafka.servers.kafka.request import Request
from sskafka.wire.messages import alter_configs as full
from sskafka.wire.messages import incremental_alter_configs as incremental

NODE_ID = 1
SETTINGS = Settings.resolve(overrides={"node.id": str(NODE_ID)})
ALL_BROKERS = (RESOURCE_BROKER, "")


class AgreeingController:
    image = ClusterImage()

    def __init__(self) -> None:
        self.asked: list[tuple[int, str]] = []

    async def ask(self, message: Any, timeout_ms: int, caller: object = None) -> Any:
        self.asked += [(resource.resource_type, resource.resource_name) for resource in message.resources]
        done = [(0, None, resource.resource_type, resource.resource_name) for resource in message.resources]
        if isinstance(message, full.AlterConfigsRequest):
            return full.AlterConfigsResponse(responses=[full.AlterConfigsResourceResponse(*one) for one in done])
        return incremental.IncrementalAlterConfigsResponse(
            responses=[incremental.AlterConfigsResourceResponse(*one) for one in done]
        )


async def alter(controller: AgreeingController, is_full: bool, *resources: tuple[int, str]) -> list[int]:
    handlers = ConfigHandlers(NODE_ID, controller, SETTINGS)
    connection: Any = SimpleNamespace(
        authorizer=AllowAll(), principal="User:me", host="127.0.0.1", is_token_authenticated=False
    )
    request = Request(connection, 0, 1, None, memoryview(b""), 0, 0, 0)
    response: Any
    if is_full:
        every = full.AlterConfigsRequest([full.AlterConfigsResource(*resource) for resource in resources])
        response = await handlers.alter_configs(every, request)
    else:
        some = [incremental.AlterConfigsResource(*resource) for resource in resources]
        response = await handlers.incremental_alter_configs(incremental.IncrementalAlterConfigsRequest(some), request)
    return [one.error_code for one in response.responses]


@pytest.mark.parametrize("is_full", [True, False])
def test_repeated_resources_are_refused_before_they_are_judged(is_full: bool) -> None:
    """9,999 times all brokers, in 40 kB, once took a second in one turn of the event loop."""
    controller = AgreeingController()
    codes = asyncio.run(alter(controller, is_full, ALL_BROKERS, (RESOURCE_TOPIC, "t"), ALL_BROKERS))
    assert codes == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
    assert controller.asked == [(RESOURCE_TOPIC, "t")]


@pytest.mark.parametrize("is_full", [True, False])
def test_other_work_comes_in_between_resources(is_full: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One broker has many names: 1, 01, 001 and so on."""
    monkeypatch.setattr(configs, "SLICE_NS", 0)
    names = ["0" * zeros + str(NODE_ID) for zeros in range(20)]
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async def main() -> list[int]:
        counting = asyncio.create_task(count_turns())
        codes = await alter(AgreeingController(), is_full, *((RESOURCE_BROKER, name) for name in names))
        counting.cancel()
        return codes

    assert asyncio.run(main()) == [ErrorCode.NONE] * len(names)
    assert turns >= len(names) - 1
