"""AlterUserScramCredentials: set or delete SCRAM credentials of users."""

from dataclasses import field
from typing import ClassVar

from sskafka.wire.schema import Bytes, Int8, Int16, Int32, String, message, request, response


@message
class ScramCredentialDeletion:
    name: String = ""
    mechanism: Int8 = 0


@message
class ScramCredentialUpsertion:
    name: String = ""
    mechanism: Int8 = 0
    iterations: Int32 = 0
    salt: Bytes = b""
    salted_password: Bytes = b""


@message
class AlterUserScramCredentialsRequest:
    SCHEMA: ClassVar = request(51)

    deletions: list[ScramCredentialDeletion] = field(default_factory=list)
    upsertions: list[ScramCredentialUpsertion] = field(default_factory=list)


@message
class AlterUserScramCredentialsResult:
    user: String = ""
    error_code: Int16 = 0
    error_message: String | None = ""


@message
class AlterUserScramCredentialsResponse:
    SCHEMA: ClassVar = response(51)

    throttle_time_ms: Int32 = 0
    results: list[AlterUserScramCredentialsResult] = field(default_factory=list)
