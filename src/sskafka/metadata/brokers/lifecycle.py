"""Life cycle of a broker: registered (fenced) -> unfenced -> in controlled shutdown -> fenced -> unregistered.

The broker epoch is the offset of the registration. A request with an older epoch comes from an earlier process and is
rejected.
"""

from collections.abc import Iterable

from sskafka.metadata.brokers.registration import BrokerRegistration
from sskafka.metadata.controller_result import ControllerResult
from sskafka.metadata.election_rules import ElectionRules
from sskafka.metadata.elections import (
    changes_when_broker_restarts,
    changes_when_broker_returns,
    changes_when_brokers_stop,
    changes_when_only_broker_restarts,
)
from sskafka.metadata.features import ACCEPTED_FEATURES, KRAFT_VERSION
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
    image: ClusterImage,
    request: BrokerRegistrationRequest,
    cluster_id: str,
    settings: Settings,
    *,
    previous_may_be_alive: bool,
) -> ControllerResult[BrokerRegistrationResponse]:
    """Register a broker.

    `previous_may_be_alive`: an earlier process with this id was heard from so recently that it may still be running.
    The new process starts fenced, so it is removed from ISRs. The earlier process stopped cleanly if the request
    contains its broker epoch, because a broker writes its epoch to disk only at the end of a clean shutdown.
    """
    known = image.brokers.get(request.broker_id)
    problem = _registration_problem(image, request, known, cluster_id, previous_may_be_alive)
    if problem is not None:
        return ControllerResult((), BrokerRegistrationResponse(error_code=problem))
    if known is not None and known.incarnation_id == request.incarnation_id:
        return ControllerResult((), BrokerRegistrationResponse(broker_epoch=known.epoch))
    record = _registration_record(request, image.next_offset)
    broker = BrokerRegistration.from_record(record)
    stopped_cleanly = known is not None and known.epoch == request.previous_broker_epoch
    rules = ElectionRules(image, settings, stopping=(broker.id,))
    changes = changes_when_broker_restarts(rules, broker, stopped_cleanly=stopped_cleanly)
    return ControllerResult([record, *changes], BrokerRegistrationResponse(broker_epoch=broker.epoch))


def start_single_broker(
    image: ClusterImage, request: BrokerRegistrationRequest, cluster_id: str, settings: Settings
) -> ControllerResult[BrokerRegistrationResponse]:
    """Register and unfence, in one step, the broker that runs in the same process as the only controller."""
    known = image.brokers.get(request.broker_id)
    problem = _registration_problem(image, request, known, cluster_id, previous_may_be_alive=False)
    if problem is not None:
        return ControllerResult((), BrokerRegistrationResponse(error_code=problem))
    record = _registration_record(request, image.next_offset)
    broker = BrokerRegistration.from_record(record)
    rules = ElectionRules(image, settings, starting=broker)
    changes = changes_when_only_broker_restarts(rules, broker, was_registered=known is not None)
    unfence = BrokerRegistrationChangeRecord(broker.id, broker.epoch, fenced=UNFENCE)
    return ControllerResult([record, unfence, *changes], BrokerRegistrationResponse(broker_epoch=broker.epoch))


def unfence_broker(image: ClusterImage, broker_id: int, settings: Settings) -> ControllerResult[None]:
    broker = image.brokers[broker_id]
    records: list[MetadataRecord] = []
    if broker.fenced:
        records.append(BrokerRegistrationChangeRecord(broker_id, broker.epoch, fenced=UNFENCE))
        records += changes_when_broker_returns(ElectionRules(image, settings, starting=broker), broker_id)
    return ControllerResult(records, None)


def fence_brokers(image: ClusterImage, broker_ids: Iterable[int], settings: Settings) -> ControllerResult[None]:
    """Fence brokers that stopped or were silent for too long; all at once, so that none of them is elected leader."""
    known = [image.brokers[broker_id] for broker_id in broker_ids if broker_id in image.brokers]
    stopping = [broker for broker in known if not broker.fenced]
    if not stopping:
        return ControllerResult([], None)
    ids = {broker.id for broker in stopping}
    records: list[MetadataRecord] = [*changes_when_brokers_stop(ElectionRules(image, settings, stopping=ids), ids)]
    records += [BrokerRegistrationChangeRecord(broker.id, broker.epoch, fenced=FENCE) for broker in stopping]
    return ControllerResult(records, None)


def begin_controlled_shutdown(image: ClusterImage, broker_id: int, settings: Settings) -> ControllerResult[None]:
    """Move the leaderships of the broker to other brokers; it keeps answering clients that do not know of this yet."""
    broker = image.brokers[broker_id]
    if broker.in_controlled_shutdown:
        return ControllerResult((), None)
    change = BrokerRegistrationChangeRecord(broker_id, broker.epoch, in_controlled_shutdown=1)
    rules = ElectionRules(image, settings, stopping=(broker_id,))
    return ControllerResult([change, *changes_when_brokers_stop(rules, (broker_id,))], None)


def unregister_broker(
    image: ClusterImage, request: UnregisterBrokerRequest, settings: Settings
) -> ControllerResult[UnregisterBrokerResponse]:
    broker = image.brokers.get(request.broker_id)
    if broker is None:
        message = f"Broker ID {request.broker_id} is not currently registered"
        response = UnregisterBrokerResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED, error_message=message)
        return ControllerResult((), response)
    rules = ElectionRules(image, settings, stopping=(broker.id,))
    records: list[MetadataRecord] = [*changes_when_brokers_stop(rules, (broker.id,))]
    records.append(UnregisterBrokerRecord(broker.id, broker.epoch))
    return ControllerResult(records, UnregisterBrokerResponse(error_message=None))


def supported_features() -> list[Feature]:
    """Return the features that a broker of this software reports when it registers."""
    return [Feature(name, levels.minimum, levels.maximum) for name, levels in ACCEPTED_FEATURES.items()]


def _registration_problem(
    image: ClusterImage,
    request: BrokerRegistrationRequest,
    known: BrokerRegistration | None,
    cluster_id: str,
    previous_may_be_alive: bool,
) -> ErrorCode | None:
    if request.cluster_id != cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    is_another = known is not None and known.incarnation_id != request.incarnation_id
    is_expected = known is not None and known.in_controlled_shutdown
    if is_another and previous_may_be_alive and not is_expected:
        return ErrorCode.DUPLICATE_BROKER_REGISTRATION
    if not _supports_finalized_features(image, request.features):
        return ErrorCode.UNSUPPORTED_VERSION
    if _has_copied_directory(image, request):
        return ErrorCode.INVALID_REGISTRATION
    return None


def _supports_finalized_features(image: ClusterImage, features: Iterable[Feature]) -> bool:
    """Return whether the broker supports every feature level that the cluster has finalized."""
    supported = {item.name: item for item in features}
    for name, level in image.features.items():
        if name == KRAFT_VERSION:
            continue
        if name not in supported:
            return False
        if not supported[name].min_supported_version <= level <= supported[name].max_supported_version:
            return False
    return True


def _has_copied_directory(image: ClusterImage, request: BrokerRegistrationRequest) -> bool:
    """Return whether another broker has one of the directory ids, which means that the directory was copied."""
    others = {
        directory
        for broker in image.brokers.values()
        if broker.id != request.broker_id
        for directory in broker.directories
    }
    return len(set(request.log_dirs)) != len(request.log_dirs) or not others.isdisjoint(request.log_dirs)


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
