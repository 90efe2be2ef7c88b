"""AlterClientQuotas and DescribeClientQuotas. Quotas are stored in the metadata log but not enforced."""

import logging

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

log = logging.getLogger(__name__)


class ClientQuotaHandlers:
    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def describe(self, message: DescribeClientQuotasRequest, request: Request) -> DescribeClientQuotasResponse:
        return describe_client_quotas(self._controller.image, message)

    async def alter(self, message: AlterClientQuotasRequest, request: Request) -> AlterClientQuotasResponse:
        def refused(code: ErrorCode, text: str | None) -> AlterClientQuotasResponse:
            entries = [ResponseEntryData(code, text, entry.entity) for entry in message.entries]
            return AlterClientQuotasResponse(entries=entries)

        response = await ask(self._controller, message, refused, request.caller)
        if any(entry.error_code == ErrorCode.NONE for entry in response.entries) and not message.validate_only:
            log.warning("client quotas were stored; this broker does not enforce them")
        return response
