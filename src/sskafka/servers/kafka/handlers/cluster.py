"""DescribeCluster: the cluster's id, and its brokers or, on a controller's listener, its controllers."""

from collections.abc import Callable, Iterable

from sskafka.model.acl import AclOperation
from sskafka.model.errors import ErrorCode
from sskafka.raft.voters import NO_NODE
from sskafka.servers.kafka.authorization import AUTHORIZED_OPERATIONS_OMITTED
from sskafka.servers.kafka.cluster_view import ClusterView
from sskafka.servers.kafka.request import Request
from sskafka.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS, CONTROLLERS = 1, 2


class ClusterHandler:
    """`controllers`: describe these nodes instead of the brokers."""

    def __init__(
        self, view: ClusterView, controllers: Callable[[], Iterable[DescribeClusterBroker]] | None = None
    ) -> None:
        self._view = view
        self._controllers = controllers
        self._endpoint_type = BROKERS if controllers is None else CONTROLLERS

    def describe_cluster(self, message: DescribeClusterRequest, request: Request) -> DescribeClusterResponse:
        if message.endpoint_type != self._endpoint_type:
            return _refused(message.endpoint_type, self._endpoint_type)
        if self._controllers is not None and not request.may_on_cluster(AclOperation.ALTER):
            return DescribeClusterResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        rights = (
            request.rights_on_cluster()
            if message.include_cluster_authorized_operations
            else AUTHORIZED_OPERATIONS_OMITTED
        )
        nodes = list(self._nodes(message, request))
        controller_id = self._view.controller_id
        return DescribeClusterResponse(
            endpoint_type=self._endpoint_type,
            cluster_id=self._view.cluster_id,
            controller_id=controller_id if any(node.broker_id == controller_id for node in nodes) else NO_NODE,
            brokers=nodes,
            cluster_authorized_operations=rights,
        )

    def _nodes(self, message: DescribeClusterRequest, request: Request) -> Iterable[DescribeClusterBroker]:
        if self._controllers is not None:
            return self._controllers()
        return [
            DescribeClusterBroker(broker.broker_id, broker.host, broker.port, broker.rack, broker.fenced)
            for broker in self._view.brokers(request.listener_name, message.include_fenced_brokers)
        ]


def _refused(requested: int, here: int) -> DescribeClusterResponse:
    names = {BROKERS: "BROKER", CONTROLLERS: "CONTROLLER"}
    if requested in names:
        text = (
            f"The request was sent to an endpoint of type {names[here]}, but we wanted an endpoint of type "
            f"{names[requested]}"
        )
        return DescribeClusterResponse(error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE, error_message=text)
    text = f"Unsupported endpoint type {requested}"
    return DescribeClusterResponse(error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, error_message=text)
