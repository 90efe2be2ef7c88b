"""A broker's life in the cluster:  registered (fenced) -> unfenced -> in controlled shutdown -> fenced -> unregistered.

Its epoch is the offset of its registration: a request with an older epoch comes from an earlier life and is refused.
"""

from collections.abc import Iterable

from sskafka.metadata.broker_registration import BrokerRegistration
from sskafka.metadata.decision import Decision
from sskafka.metadata.election_rules import ElectionRules
from sskafka.metadata.elections import (
    changes_as_broker_comes,
    changes_as_broker_restarts,
    changes_as_brokers_go,
    changes_as_only_broker_returns,
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
    old_life_may_live: bool,
) -> Decision[BrokerRegistrationResponse]:
    """`old_life_may_live`: an earlier process with this id was heard of so recently that it may still be running.

    The new life is fenced, so the old one's place in ISRs is given up. It stopped cleanly if the new one brings the
    old one's epoch, which is written down at the end of a clean stop.
    """
    known = image.brokers.get(request.broker_id)
    problem = _registration_problem(image, request, known, cluster_id, old_life_may_live)
    if problem is not None:
        return Decision((), BrokerRegistrationResponse(error_code=problem))
    if known is not None and known.incarnation_id == request.incarnation_id:
        return Decision((), BrokerRegistrationResponse(broker_epoch=known.epoch))
    record = _registration_record(request, image.next_offset)
    broker = BrokerRegistration.from_record(record)
    stopped_cleanly = known is not None and known.epoch == request.previous_broker_epoch
    rules = ElectionRules(image, settings, going=(broker.id,))
    changes = changes_as_broker_restarts(rules, broker, stopped_cleanly=stopped_cleanly)
    return Decision([record, *changes], BrokerRegistrationResponse(broker_epoch=broker.epoch))


def start_single_broker(
    image: ClusterImage, request: BrokerRegistrationRequest, cluster_id: str, settings: Settings
) -> Decision[BrokerRegistrationResponse]:
    """Registers and unfences in one step the broker that shares its process with the only controller."""
    known = image.brokers.get(request.broker_id)
    problem = _registration_problem(image, request, known, cluster_id, old_life_may_live=False)
    if problem is not None:
        return Decision((), BrokerRegistrationResponse(error_code=problem))
    record = _registration_record(request, image.next_offset)
    broker = BrokerRegistration.from_record(record)
    rules = ElectionRules(image, settings, coming=broker)
    changes = changes_as_only_broker_returns(rules, broker, has_lived=known is not None)
    unfence = BrokerRegistrationChangeRecord(broker.id, broker.epoch, fenced=UNFENCE)
    return Decision([record, unfence, *changes], BrokerRegistrationResponse(broker_epoch=broker.epoch))


def unfence_broker(image: ClusterImage, broker_id: int, settings: Settings) -> Decision[None]:
    broker = image.brokers[broker_id]
    records: list[MetadataRecord] = []
    if broker.fenced:
        records.append(BrokerRegistrationChangeRecord(broker_id, broker.epoch, fenced=UNFENCE))
        records += changes_as_broker_comes(ElectionRules(image, settings, coming=broker), broker_id)
    return Decision(records, None)


def fence_brokers(image: ClusterImage, broker_ids: Iterable[int], settings: Settings) -> Decision[None]:
    """The brokers stopped, or were not heard of for too long. Together, so that none of them is elected meanwhile."""
    known = [image.brokers[broker_id] for broker_id in broker_ids if broker_id in image.brokers]
    going = [broker for broker in known if not broker.fenced]
    if not going:
        return Decision([], None)
    ids = {broker.id for broker in going}
    records: list[MetadataRecord] = [*changes_as_brokers_go(ElectionRules(image, settings, going=ids), ids)]
    records += [BrokerRegistrationChangeRecord(broker.id, broker.epoch, fenced=FENCE) for broker in going]
    return Decision(records, None)


def begin_controlled_shutdown(image: ClusterImage, broker_id: int, settings: Settings) -> Decision[None]:
    """Its partitions are led by others from now on, while it still answers those who have not heard of it."""
    broker = image.brokers[broker_id]
    if broker.in_controlled_shutdown:
        return Decision((), None)
    change = BrokerRegistrationChangeRecord(broker_id, broker.epoch, in_controlled_shutdown=1)
    rules = ElectionRules(image, settings, going=(broker_id,))
    return Decision([change, *changes_as_brokers_go(rules, (broker_id,))], None)


def unregister_broker(
    image: ClusterImage, request: UnregisterBrokerRequest, settings: Settings
) -> Decision[UnregisterBrokerResponse]:
    broker = image.brokers.get(request.broker_id)
    if broker is None:
        message = f"Broker ID {request.broker_id} is not currently registered"
        response = UnregisterBrokerResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED, error_message=message)
        return Decision((), response)
    rules = ElectionRules(image, settings, going=(broker.id,))
    records: list[MetadataRecord] = [*changes_as_brokers_go(rules, (broker.id,))]
    records.append(UnregisterBrokerRecord(broker.id, broker.epoch))
    return Decision(records, UnregisterBrokerResponse(error_message=None))


def supported_features() -> list[Feature]:
    """What a broker of this software says of itself when it registers."""
    return [Feature(name, levels.minimum, levels.maximum) for name, levels in ACCEPTED_FEATURES.items()]


def _registration_problem(
    image: ClusterImage,
    request: BrokerRegistrationRequest,
    known: BrokerRegistration | None,
    cluster_id: str,
    old_life_may_live: bool,
) -> ErrorCode | None:
    if request.cluster_id != cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    is_another = known is not None and known.incarnation_id != request.incarnation_id
    is_expected = known is not None and known.in_controlled_shutdown
    if is_another and old_life_may_live and not is_expected:
        return ErrorCode.DUPLICATE_BROKER_REGISTRATION
    if not _can_take_part(image, request.features):
        return ErrorCode.UNSUPPORTED_VERSION
    if _has_copied_directory(image, request):
        return ErrorCode.INVALID_REGISTRATION
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


def _has_copied_directory(image: ClusterImage, request: BrokerRegistrationRequest) -> bool:
    """Directories have ids of their own; one that two brokers have is a copy of the other."""
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
