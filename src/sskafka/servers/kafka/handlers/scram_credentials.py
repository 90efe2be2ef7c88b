"""AlterUserScramCredentials and DescribeUserScramCredentials."""

from sskafka.metadata.scram_credentials import describe_user_scram_credentials
from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.controller import Controller, ask
from sskafka.servers.kafka.request import Request
from sskafka.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from sskafka.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)


class ScramCredentialHandlers:
    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def describe(
        self, message: DescribeUserScramCredentialsRequest, request: Request
    ) -> DescribeUserScramCredentialsResponse:
        return describe_user_scram_credentials(self._controller.image, message)

    async def alter(
        self, message: AlterUserScramCredentialsRequest, request: Request
    ) -> AlterUserScramCredentialsResponse:
        names = [change.name for change in message.deletions] + [change.name for change in message.upsertions]

        def refused(code: ErrorCode, text: str | None) -> AlterUserScramCredentialsResponse:
            results = [AlterUserScramCredentialsResult(user, code, text) for user in dict.fromkeys(names)]
            return AlterUserScramCredentialsResponse(results=results)

        return await ask(self._controller, message, refused, request.caller)
