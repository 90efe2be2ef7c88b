"""What brokers ask of the active controller: on their own account, or for a client whose request they pass on.

A node that is not the active controller says NOT_CONTROLLER; whoever asked looks for the one that is.
"""

from typing import Any

from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.quorum.envelopes import answer_envelope, open_envelope
from sskafka.servers.kafka.authorization import Operation
from sskafka.servers.kafka.controller import QuorumMember
from sskafka.servers.kafka.error_mapping import error_code_of
from sskafka.servers.kafka.registry import Registry
from sskafka.servers.kafka.request import Request
from sskafka.wire.apis import API_BY_KEY, ApiKey
from sskafka.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse

BROKER_APIS = (
    ApiKey.BROKER_REGISTRATION,
    ApiKey.BROKER_HEARTBEAT,
    ApiKey.ALTER_PARTITION,
    ApiKey.ALLOCATE_PRODUCER_IDS,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS,
    ApiKey.CONTROLLER_REGISTRATION,
)
FORWARDED_APIS = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    }
)
"""What a client may ask any broker for, and only the controller can do."""


class ControllerHandlers:
    def __init__(self, member: QuorumMember) -> None:
        self._member = member

    def register(self, registry: Registry, *, is_advertised: bool) -> None:
        operation = Operation.CLUSTER_ACTION
        for key in BROKER_APIS:
            registry.add_message(key, self.decide, cluster_operation=operation, is_advertised=is_advertised)
        registry.add_message(ApiKey.ENVELOPE, self.envelope, cluster_operation=operation, is_advertised=is_advertised)

    async def decide(self, message: Any, request: Request) -> Any:
        try:
            return await self._member.decide(message)
        except Exception as error:
            code, _ = error_code_of(error)
            return API_BY_KEY[message.SCHEMA.key].response_class()(error_code=code)

    async def envelope(self, message: EnvelopeRequest, request: Request) -> EnvelopeResponse:
        try:
            letter = open_envelope(message)
            if letter.key not in FORWARDED_APIS:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"API {letter.key} is not passed on")
            return answer_envelope(letter, await self._member.decide(letter.request))
        except Exception as error:
            code, _ = error_code_of(error)
            return EnvelopeResponse(error_code=code)
