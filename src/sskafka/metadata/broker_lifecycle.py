"""A broker's life in the cluster:  registered (fenced) -> unfenced -> in controlled shutdown -> fenced -> unregistered.

Its epoch is the offset of its registration: a request with an older epoch comes from an earlier life and is refused.
"""

from collections.abc import Iterable

from sskafka.metadata.broker_registration import BrokerRegistration
from sskafka.metadata.decision import Decision
from sskafka.metadata.effective_settings import effective_settings
from sskafka.metadata.elections import (
    MinInsync,
    changes_as_broker_comes,
    changes_as_broker_goes,
    changes_as_broker_returns,
)
from sskafka.metadata.features import KRAFT_VERSION, SUPPORTED_FEATURES
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import (
    FENCE,
    UNFENCE,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from sskafka.model.errors import ErrorCode
from sskafka.model.settings import Settings
from sskafka.wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
)
from sskafka.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


def register_broker(
    image: ClusterImage, request: BrokerRegistrationRequest, cluster_id: str, *, old_life_may_live: bool
) -> Decision[BrokerRegistrationResponse]:
    """`old_life_may_live`: an earlier process with this id was heard of so recently that it may still be running."""
    known = image.brokers.get(request.broker_id)
    problem = _registration_problem(image, request, known, cluster_id, old_life_may_live)
    if problem is not None:
        return Decision((), BrokerRegistrationResponse(error_code=problem))
    if known is not None and known.incarnation_id == request.incarnation_id:
        return Decision((), BrokerRegistrationResponse(broker_epoch=known.epoch))
    record = _registration_record(request, image.next_offset)
    return Decision([record], BrokerRegistrationResponse(broker_epoch=record.broker_epoch))


def start_single_broker(
    image: ClusterImage, request: BrokerRegistrationRequest, cluster_id: str, settings: Settings
) -> Decision[BrokerRegistrationResponse]:
    """Registers and unfences in one step the broker that shares its process with the only controller."""
    registered = register_broker(image, request, cluster_id, old_life_may_live=False)
    if registered.response.error_code != ErrorCode.NONE:
        return registered
    min_insync = min_insync_of(image, settings)
    broker_id, epoch = request.broker_id, registered.response.broker_epoch
    records = [*registered.records, BrokerRegistrationChangeRecord(broker_id, epoch, fenced=UNFENCE)]
    return Decision([*records, *changes_as_broker_returns(image, broker_id, min_insync)], registered.response)


def unfence_broker(image: ClusterImage, broker_id: int, settings: Settings) -> Decision[None]:
    broker = image.brokers[broker_id]
    records: list[MetadataRecord] = []
    if broker.fenced:
        records.append(BrokerRegistrationChangeRecord(broker_id, broker.epoch, fenced=UNFENCE))
        records += changes_as_broker_comes(image, broker_id, min_insync_of(image, settings))
    return Decision(records, None)


def fence_broker(image: ClusterImage, broker_id: int, settings: Settings) -> Decision[None]:
    """The broker stopped, or was not heard of for too long."""
    broker = image.brokers.get(broker_id)
    records: list[MetadataRecord] = []
    if broker is not None and not broker.fenced:
        records += changes_as_broker_goes(image, broker_id, min_insync_of(image, settings))
        records.append(BrokerRegistrationChangeRecord(broker_id, broker.epoch, fenced=FENCE))
    return Decision(records, None)


def unregister_broker(
    image: ClusterImage, request: UnregisterBrokerRequest, settings: Settings
) -> Decision[UnregisterBrokerResponse]:
    broker = image.brokers.get(request.broker_id)
    if broker is None:
        message = f"there is no broker {request.broker_id}"
        response = UnregisterBrokerResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED, error_message=message)
        return Decision((), response)
    records: list[MetadataRecord] = [*changes_as_broker_goes(image, broker.id, min_insync_of(image, settings))]
    records.append(UnregisterBrokerRecord(broker.id, broker.epoch))
    return Decision(records, UnregisterBrokerResponse(error_message=None))


def supported_features() -> list[Feature]:
    """What a broker of this software says of itself when it registers."""
    return [Feature(name, levels.minimum, levels.maximum) for name, levels in SUPPORTED_FEATURES.items()]


def min_insync_of(image: ClusterImage, settings: Settings) -> MinInsync:
    effective = effective_settings(settings, image)

    def min_insync(topic_name: str) -> int:
        own = image.topic_configs(topic_name).get("min.insync.replicas")
        value: int = int(own) if own is not None else effective["min.insync.replicas"]
        return value

    return min_insync


def _registration_problem(
    image: ClusterImage,
    request: BrokerRegistrationRequest,
    known: BrokerRegistration | None,
    cluster_id: str,
    old_life_may_live: bool,
) -> ErrorCode | None:
    if request.cluster_id != cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if known is not None and known.incarnation_id != request.incarnation_id and old_life_may_live:
        return ErrorCode.DUPLICATE_BROKER_REGISTRATION
    if not _can_take_part(image, request.features):
        return ErrorCode.UNSUPPORTED_VERSION
    return None


def _can_take_part(image: ClusterImage, features: Iterable[Feature]) -> bool:
    """Whether the broker supports every level that the cluster has finalized."""
    supported = {item.name: item for item in features}
    for name, level in image.features.items():
        if name == KRAFT_VERSION:
            continue
        if name not in supported:
            return False
        if not supported[name].min_supported_version <= level <= supported[name].max_supported_version:
            return False
    return True


def _registration_record(request: BrokerRegistrationRequest, epoch: int) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=epoch,
        end_points=[BrokerEndpoint(at.name, at.host, at.port, at.security_protocol) for at in request.listeners],
        features=[
            BrokerFeature(item.name, item.min_supported_version, item.max_supported_version)
            for item in request.features
        ],
        rack=request.rack,
        log_dirs=sorted(request.log_dirs),
    )
