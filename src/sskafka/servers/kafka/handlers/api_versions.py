"""ApiVersions: the registry as clients see it, and the features that the cluster has agreed on.

An unknown version of this API is answered in the form of version 0, which every client can read, with the error
and the table: so a newer client learns what to ask for instead.
"""

from sskafka.metadata.features import SUPPORTED_FEATURES
from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.cluster_view import ClusterView
from sskafka.servers.kafka.frames import response_frame
from sskafka.servers.kafka.registry import Registry
from sskafka.servers.kafka.request import Request, Response
from sskafka.wire.apis import ApiKey
from sskafka.wire.codec import decode
from sskafka.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

OLDEST_FORM = 0
FEATURES_MIN_0_FROM = 4  # older clients choke on a supported feature whose lowest level is 0


class ApiVersionsHandler:
    def __init__(self, registry: Registry, view: ClusterView) -> None:
        self._registry = registry
        self._view = view

    def handle(self, request: Request) -> Response:
        api = self._registry.by_key[ApiKey.API_VERSIONS]
        if not api.serves(request.version):
            refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=self._api_keys())
            return response_frame(ApiKey.API_VERSIONS, OLDEST_FORM, request.correlation_id, refusal)
        decode(ApiVersionsRequest, request.version, request.frame, request.position)
        return response_frame(
            ApiKey.API_VERSIONS, request.version, request.correlation_id, self._answer(request.version)
        )

    def _answer(self, version: int) -> ApiVersionsResponse:
        image = self._view.image
        return ApiVersionsResponse(
            api_keys=self._api_keys(),
            supported_features=[
                SupportedFeatureKey(name, low, high)
                for name, (low, high) in SUPPORTED_FEATURES.items()
                if low > 0 or version >= FEATURES_MIN_0_FROM
            ],
            finalized_features_epoch=image.next_offset - 1,
            finalized_features=[FinalizedFeatureKey(name, level, level) for name, level in image.features.items()],
        )

    def _api_keys(self) -> list[ApiVersion]:
        return [ApiVersion(api.key, api.advertised_min, api.max_version) for api in self._registry if api.is_advertised]
