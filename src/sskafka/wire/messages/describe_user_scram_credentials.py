"""DescribeUserScramCredentials: the SCRAM mechanisms for which users have credentials."""

from dataclasses import field
from typing import ClassVar

from sskafka.wire.schema import Int8, Int16, Int32, String, message, request, response


@message
class UserName:
    name: String = ""


@message
class DescribeUserScramCredentialsRequest:
    SCHEMA: ClassVar = request(50)

    users: list[UserName] | None = field(default_factory=list)


@message
class CredentialInfo:
    mechanism: Int8 = 0
    iterations: Int32 = 0


@message
class DescribeUserScramCredentialsResult:
    user: String = ""
    error_code: Int16 = 0
    error_message: String | None = ""
    credential_infos: list[CredentialInfo] = field(default_factory=list)


@message
class DescribeUserScramCredentialsResponse:
    SCHEMA: ClassVar = response(50)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    results: list[DescribeUserScramCredentialsResult] = field(default_factory=list)
