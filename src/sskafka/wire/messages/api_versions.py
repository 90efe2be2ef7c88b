"""ApiVersions: the API versions that a broker supports, and the finalized features of its cluster."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.wire.schema import Bool, Int16, Int32, Int64, String, ignorable, message, request, response, since, tagged


@message
class ApiVersionsRequest:
    SCHEMA: ClassVar = request(18)

    client_software_name: Annotated[String, since(3), ignorable] = ""
    client_software_version: Annotated[String, since(3), ignorable] = ""


@message
class ApiVersion:
    api_key: Int16 = 0
    min_version: Int16 = 0
    max_version: Int16 = 0


@message
class SupportedFeatureKey:
    name: String = ""
    min_version: Int16 = 0
    max_version: Int16 = 0


@message
class FinalizedFeatureKey:
    name: String = ""
    max_version_level: Int16 = 0
    min_version_level: Int16 = 0


@message
class ApiVersionsResponse:
    SCHEMA: ClassVar = response(18)

    error_code: Int16 = 0
    api_keys: list[ApiVersion] = field(default_factory=list)
    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    supported_features: Annotated[list[SupportedFeatureKey], tagged(0, since=3), ignorable] = field(
        default_factory=list
    )
    finalized_features_epoch: Annotated[Int64, tagged(1, since=3), ignorable] = -1
    finalized_features: Annotated[list[FinalizedFeatureKey], tagged(2, since=3), ignorable] = field(
        default_factory=list
    )
    zk_migration_ready: Annotated[Bool, tagged(3, since=3), ignorable] = False
