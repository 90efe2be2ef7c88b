"""DescribeDelegationToken: the delegation tokens of owners."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.wire.schema import Bytes, Int16, Int32, Int64, String, ignorable, message, request, response, since


@message
class DescribeDelegationTokenOwner:
    principal_type: String = ""
    principal_name: String = ""


@message
class DescribeDelegationTokenRequest:
    SCHEMA: ClassVar = request(41)

    owners: list[DescribeDelegationTokenOwner] | None = field(default_factory=list)


@message
class DescribedDelegationTokenRenewer:
    principal_type: String = ""
    principal_name: String = ""


@message
class DescribedDelegationToken:
    principal_type: String = ""
    principal_name: String = ""
    token_requester_principal_type: Annotated[String, since(3), ignorable] = ""
    token_requester_principal_name: Annotated[String, since(3), ignorable] = ""
    issue_timestamp: Int64 = 0
    expiry_timestamp: Int64 = 0
    max_timestamp: Int64 = 0
    token_id: String = ""
    hmac: Bytes = b""
    renewers: list[DescribedDelegationTokenRenewer] = field(default_factory=list)


@message
class DescribeDelegationTokenResponse:
    SCHEMA: ClassVar = response(41)

    error_code: Int16 = 0
    tokens: list[DescribedDelegationToken] = field(default_factory=list)
    throttle_time_ms: Int32 = 0
