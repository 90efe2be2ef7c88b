"""CreateDelegationToken: issue a delegation token for a principal."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.wire.schema import Bytes, Int16, Int32, Int64, String, ignorable, message, request, response, since


@message
class CreatableRenewers:
    principal_type: String = ""
    principal_name: String = ""


@message
class CreateDelegationTokenRequest:
    SCHEMA: ClassVar = request(38)

    owner_principal_type: Annotated[String | None, since(3)] = ""
    owner_principal_name: Annotated[String | None, since(3)] = ""
    renewers: list[CreatableRenewers] = field(default_factory=list)
    max_lifetime_ms: Int64 = 0


@message
class CreateDelegationTokenResponse:
    SCHEMA: ClassVar = response(38)

    error_code: Int16 = 0
    principal_type: String = ""
    principal_name: String = ""
    token_requester_principal_type: Annotated[String, since(3), ignorable] = ""
    token_requester_principal_name: Annotated[String, since(3), ignorable] = ""
    issue_timestamp_ms: Int64 = 0
    expiry_timestamp_ms: Int64 = 0
    max_timestamp_ms: Int64 = 0
    token_id: String = ""
    hmac: Bytes = b""
    throttle_time_ms: Int32 = 0
