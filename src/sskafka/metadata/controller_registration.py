"""ControllerRegistration: store what a controller supports, so that finalized features fit all controllers."""

from sskafka.metadata.controller_result import ControllerResult
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import ControllerEndpoint, ControllerFeature, RegisterControllerRecord
from sskafka.wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)


def register_controller(
    image: ClusterImage, request: ControllerRegistrationRequest
) -> ControllerResult[ControllerRegistrationResponse]:
    record = RegisterControllerRecord(
        request.controller_id,
        request.incarnation_id,
        request.zk_migration_ready,
        [ControllerEndpoint(at.name, at.host, at.port, at.security_protocol) for at in request.listeners],
        [
            ControllerFeature(item.name, item.min_supported_version, item.max_supported_version)
            for item in request.features
        ],
    )
    is_known = image.controllers.get(request.controller_id) == record
    return ControllerResult(() if is_known else (record,), ControllerRegistrationResponse())
