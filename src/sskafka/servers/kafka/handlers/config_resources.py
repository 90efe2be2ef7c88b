"""ListConfigResources: the names of the resources that DescribeConfigs describes."""

from collections.abc import Iterable

from sskafka.metadata.image import ClusterImage
from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.cluster_view import ClusterView
from sskafka.servers.kafka.request import Request
from sskafka.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
ALL_TYPES = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)
TYPES_FROM = 1  # version 0 lists client metrics only


class ConfigResourcesHandler:
    def __init__(self, view: ClusterView) -> None:
        self._view = view

    def list_resources(self, message: ListConfigResourcesRequest, request: Request) -> ListConfigResourcesResponse:
        wanted = message.resource_types or ALL_TYPES if request.version >= TYPES_FROM else (CLIENT_METRICS,)
        if not set(wanted) <= set(ALL_TYPES):
            return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        image = self._view.image
        resources = [ConfigResource(name, kind) for kind in dict.fromkeys(wanted) for name in _names(image, kind)]
        return ListConfigResourcesResponse(config_resources=resources)


def _names(image: ClusterImage, kind: int) -> Iterable[str]:
    """Return all topics and brokers, and other resources that have overrides."""
    if kind == TOPIC:
        return image.topics_by_name
    if kind in {BROKER, BROKER_LOGGER}:
        return [str(broker_id) for broker_id in image.brokers]
    return [resource.name for resource in image.config_resources() if resource.type == kind]
