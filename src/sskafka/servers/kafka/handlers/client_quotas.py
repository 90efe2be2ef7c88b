"""AlterClientQuotas and DescribeClientQuotas. Quotas are stored in the metadata log."""

from sskafka.metadata.client_quotas import describe_client_quotas
from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.controller import Controller, ask
from sskafka.servers.kafka.request import Request
from sskafka.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    ResponseEntryData,
)
from sskafka.wire.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse


class ClientQuotaHandlers:
    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def describe(self, message: DescribeClientQuotasRequest, request: Request) -> DescribeClientQuotasResponse:
        return describe_client_quotas(self._controller.image, message)

    async def alter(self, message: AlterClientQuotasRequest, request: Request) -> AlterClientQuotasResponse:
        def refused(code: ErrorCode, text: str | None) -> AlterClientQuotasResponse:
            entries = [ResponseEntryData(code, text, entry.entity) for entry in message.entries]
            return AlterClientQuotasResponse(entries=entries)

        return await ask(self._controller, message, refused, request.caller)
