"""The APIs between nodes of the metadata quorum: Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch, FetchSnapshot.

Voters and observers read the metadata log with Fetch, so Fetch requests for that log are handled here.
"""

from typing import Any

from sskafka.model.acl import AclOperation
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.servers.kafka.controller import QuorumNode
from sskafka.servers.kafka.request import Request
from sskafka.wire.apis import API_BY_KEY


class QuorumHandlers:
    def __init__(self, member: QuorumNode) -> None:
        self._member = member

    async def handle(self, message: Any, request: Request) -> Any:
        if not request.may_on_cluster(AclOperation.CLUSTER_ACTION):  # Fetch of data needs other rights
            code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            return API_BY_KEY[message.SCHEMA.key].response_class()(error_code=code)
        try:
            return await self._member.answer(message)
        except KafkaError as error:
            return API_BY_KEY[message.SCHEMA.key].response_class()(error_code=error.code)
