"""Requests that brokers send to the active controller, their own and those that they forward for clients (Envelope).

A node that is not the active controller responds NOT_CONTROLLER, and the sender looks for the active one.
"""

from typing import Any

from sskafka.controller.envelopes import answer_envelope, open_envelope
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.servers.kafka.client_quotas import UNLIMITED_MUTATIONS, MutationQuota
from sskafka.servers.kafka.controller import QuorumNode
from sskafka.servers.kafka.error_mapping import error_code_of
from sskafka.servers.kafka.forwarded_requests import ForwardedHandlers, decide_for_client
from sskafka.servers.kafka.request import Request
from sskafka.wire.apis import API_BY_KEY
from sskafka.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse


class ControllerHandlers:
    def __init__(
        self, member: QuorumNode, forwarded: ForwardedHandlers, mutations: MutationQuota = UNLIMITED_MUTATIONS
    ) -> None:
        self._member = member
        self._forwarded = forwarded
        self._mutations = mutations

    async def decide(self, message: Any, request: Request) -> Any:
        try:
            return await self._member.decide(message)
        except Exception as error:
            code, _ = error_code_of(error)
            return API_BY_KEY[message.SCHEMA.key].response_class()(error_code=code)

    async def envelope(self, message: EnvelopeRequest, request: Request) -> EnvelopeResponse:
        try:
            content = open_envelope(message)
            if not API_BY_KEY[content.key].forwarded:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"API {content.key} is not forwarded")
            is_checked = request.connection.authorizer.is_configured or self._mutations.is_limited
            if content.caller is None or not is_checked:
                response = await self._member.decide(content.request, content.caller)
            else:
                response = await decide_for_client(self._member, self._forwarded, content, content.caller, request)
            return answer_envelope(content, response)
        except Exception as error:
            code, _ = error_code_of(error)
            return EnvelopeResponse(error_code=code)
