"""ApiVersions: the APIs that this listener serves, and the finalized features of the cluster.

A request with an unknown version of ApiVersions gets a response of version 0, which every client can read. That
response has the error UNSUPPORTED_VERSION and the supported versions, so a newer client knows which one to use. APIs
between nodes, and APIs and versions that Kafka does not list, are listed only for SSKafka nodes (wire/apis.py).
"""

from re import compile as regex

from sskafka.metadata.features import SUPPORTED_FEATURES
from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.cluster_view import ClusterView
from sskafka.servers.kafka.frames import response_frame
from sskafka.servers.kafka.registry import Registry
from sskafka.servers.kafka.request import Request, Response
from sskafka.wire.apis import API_BY_KEY, Api, ApiKey, Listeners
from sskafka.wire.codec import decode
from sskafka.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

OLDEST_FORM = 0
FEATURES_MIN_0_FROM = 4  # older clients cannot parse a supported feature whose lowest level is 0


OWN_SOFTWARE = "sskafka"
SOFTWARE_FROM = 3  # from this version on, clients name their software
_SOFTWARE = regex(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


class ApiVersionsHandler:
    def __init__(self, registry: Registry, view: ClusterView, listed_on: Listeners) -> None:
        """`listed_on`: the kind of listeners whose APIs are listed for clients."""
        self._registry = registry
        self._listed_on = listed_on
        self._view = view

    def handle(self, request: Request) -> Response:
        api = API_BY_KEY[ApiKey.API_VERSIONS]
        if not api.has_version(request.version):
            known = [ApiVersion(api.key, api.min_version, api.max_version)]
            refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=known)
            return response_frame(ApiKey.API_VERSIONS, OLDEST_FORM, request.correlation_id, refusal)
        message = decode(ApiVersionsRequest, request.version, request.frame, request.position)
        if _is_valid(message, request.version):
            if request.version >= SOFTWARE_FROM:
                named = message.client_software_name, message.client_software_version
                request.connection.software = named
            response = self._answer(message, request.version)
        else:
            response = ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        return response_frame(ApiKey.API_VERSIONS, request.version, request.correlation_id, response)

    def _answer(self, message: ApiVersionsRequest, version: int) -> ApiVersionsResponse:
        image = self._view.image
        return ApiVersionsResponse(
            api_keys=self._api_keys(is_own=message.client_software_name == OWN_SOFTWARE),
            supported_features=[
                SupportedFeatureKey(name, low, high)
                for name, (low, high) in SUPPORTED_FEATURES.items()
                if low > 0 or version >= FEATURES_MIN_0_FROM
            ],
            finalized_features_epoch=image.next_offset - 1,
            finalized_features=[FinalizedFeatureKey(name, level, level) for name, level in image.features.items()],
        )

    def _api_keys(self, *, is_own: bool) -> list[ApiVersion]:
        apis = [served.api for served in self._registry]
        if is_own:
            return [_listed(api, api.max_version) for api in apis]
        return [_listed(api, min(api.max_version, api.stable_until)) for api in apis if api.listeners & self._listed_on]


def _listed(api: Api, max_version: int) -> ApiVersion:
    return ApiVersion(api.key, api.min_version if api.listed_from is None else api.listed_from, max_version)


def _is_valid(message: ApiVersionsRequest, version: int) -> bool:
    """Return whether a software name or version is valid: letters and digits, with dots and hyphens between them."""
    if version < SOFTWARE_FROM:
        return True
    named = (message.client_software_name, message.client_software_version)
    return all(_SOFTWARE.fullmatch(name) is not None for name in named)
