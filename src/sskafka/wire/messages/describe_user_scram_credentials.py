"""DescribeUserScramCredentials: which SCRAM mechanisms users have credentials for."""

from dataclasses import dataclass, field
from typing import ClassVar

from sskafka.wire.schema import Int8, Int16, Int32, String, request, response


@dataclass(slots=True)
class UserName:
    name: String = ""


@dataclass(slots=True)
class DescribeUserScramCredentialsRequest:
    SCHEMA: ClassVar = request(50, versions=(0, 0), flexible_from=0)

    users: list[UserName] | None = field(default_factory=list)


@dataclass(slots=True)
class CredentialInfo:
    mechanism: Int8 = 0
    iterations: Int32 = 0


@dataclass(slots=True)
class DescribeUserScramCredentialsResult:
    user: String = ""
    error_code: Int16 = 0
    error_message: String | None = ""
    credential_infos: list[CredentialInfo] = field(default_factory=list)


@dataclass(slots=True)
class DescribeUserScramCredentialsResponse:
    SCHEMA: ClassVar = response(50, versions=(0, 0), flexible_from=0)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    results: list[DescribeUserScramCredentialsResult] = field(default_factory=list)
