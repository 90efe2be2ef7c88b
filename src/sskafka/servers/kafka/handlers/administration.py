"""Administration of the cluster: ElectLeaders, reassignments, UnregisterBroker, DescribeQuorum."""

from typing import Any

from sskafka.metadata.reassignments import list_partition_reassignments
from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.controller import Controller, ask
from sskafka.servers.kafka.request import Request
from sskafka.wire.apis import API_BY_KEY
from sskafka.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


class AdministrationHandlers:
    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    async def forward(self, message: Any, request: Request) -> Any:
        def refused(code: ErrorCode, text: str | None) -> Any:
            response = API_BY_KEY[message.SCHEMA.key].response_class()(error_code=code)
            if hasattr(response, "error_message"):
                response.error_message = text
            return response

        return await ask(self._controller, message, refused, request.caller)

    describe_quorum = forward

    def list_reassignments(
        self, message: ListPartitionReassignmentsRequest, request: Request
    ) -> ListPartitionReassignmentsResponse:
        return list_partition_reassignments(self._controller.image, message)
