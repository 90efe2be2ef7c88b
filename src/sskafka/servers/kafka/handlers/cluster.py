"""DescribeCluster: id, controller and brokers."""

from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.authorization import NOT_ASKED, Operation
from sskafka.servers.kafka.cluster_view import ClusterView
from sskafka.servers.kafka.registry import Registry
from sskafka.servers.kafka.request import Request
from sskafka.wire.apis import ApiKey
from sskafka.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS, CONTROLLERS = 1, 2


class ClusterHandler:
    def __init__(self, view: ClusterView) -> None:
        self._view = view

    def register(self, registry: Registry) -> None:
        registry.add_message(ApiKey.DESCRIBE_CLUSTER, self.describe_cluster, cluster_operation=Operation.DESCRIBE)

    def describe_cluster(self, message: DescribeClusterRequest, request: Request) -> DescribeClusterResponse:
        if message.endpoint_type != BROKERS:
            wrong = "MISMATCHED_ENDPOINT_TYPE" if message.endpoint_type == CONTROLLERS else "UNSUPPORTED_ENDPOINT_TYPE"
            return DescribeClusterResponse(
                error_code=ErrorCode[wrong],
                error_message="this listener knows brokers, not controllers",
                endpoint_type=message.endpoint_type,
            )
        rights = request.rights_on_cluster() if message.include_cluster_authorized_operations else NOT_ASKED
        return DescribeClusterResponse(
            cluster_id=self._view.cluster_id,
            controller_id=self._view.controller_id,
            brokers=[
                DescribeClusterBroker(broker.broker_id, broker.host, broker.port, broker.rack, broker.fenced)
                for broker in self._view.brokers(request.listener_name, message.include_fenced_brokers)
            ],
            cluster_authorized_operations=rights,
        )
