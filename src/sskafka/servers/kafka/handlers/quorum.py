"""What the nodes of the metadata quorum ask each other: votes, epochs, and the metadata log itself.

A Fetch for the metadata log comes over the same API as every other; `fetch_metadata` is what those are handed to.
"""

from typing import Any

from sskafka.model.errors import KafkaError
from sskafka.servers.kafka.authorization import Operation
from sskafka.servers.kafka.controller import QuorumMember
from sskafka.servers.kafka.registry import Handler, Registry
from sskafka.servers.kafka.request import Request
from sskafka.wire.apis import API_BY_KEY, ApiKey

QUORUM_APIS = (ApiKey.VOTE, ApiKey.BEGIN_QUORUM_EPOCH, ApiKey.END_QUORUM_EPOCH, ApiKey.FETCH_SNAPSHOT)


class QuorumHandlers:
    def __init__(self, member: QuorumMember) -> None:
        self._member = member

    def register(self, registry: Registry, *, is_advertised: bool) -> None:
        for key in QUORUM_APIS:
            registry.add_message(
                key, self.answer, cluster_operation=Operation.CLUSTER_ACTION, is_advertised=is_advertised
            )

    def fetch_metadata(self, registry: Registry) -> Handler:
        """The handler of a Fetch that asks for the metadata log and nothing else."""
        return registry.message_handler(ApiKey.FETCH, self.answer)

    async def answer(self, message: Any, request: Request) -> Any:
        try:
            return await self._member.answer(message)
        except KafkaError as error:
            return API_BY_KEY[message.SCHEMA.key].response_class()(error_code=error.code)
