"""UpdateFeatures: upgrade or downgrade finalized feature levels of the cluster."""

from dataclasses import field
from typing import Annotated, ClassVar

from sskafka.wire.schema import Bool, Int8, Int16, Int32, String, ignorable, message, request, response, since, until


@message
class FeatureUpdateKey:
    feature: String = ""
    max_version_level: Int16 = 0
    allow_downgrade: Annotated[Bool, until(0)] = False
    upgrade_type: Annotated[Int8, since(1)] = 1


@message
class UpdateFeaturesRequest:
    SCHEMA: ClassVar = request(57)

    timeout_ms: Int32 = 60000
    feature_updates: list[FeatureUpdateKey] = field(default_factory=list)
    validate_only: Annotated[Bool, since(1)] = False


@message
class UpdatableFeatureResult:
    feature: String = ""
    error_code: Int16 = 0
    error_message: String | None = ""


@message
class UpdateFeaturesResponse:
    SCHEMA: ClassVar = response(57)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    results: Annotated[list[UpdatableFeatureResult], until(1), ignorable] = field(default_factory=list)
