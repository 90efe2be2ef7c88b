"""BrokerHeartbeat: the state transitions of a broker.

    state                 heartbeat                                       next state
    fenced                no flags, and it has replayed its registration  unfenced
                          want_shut_down                                  stopped
    unfenced              want_fence                                      fenced
                          want_shut_down, and it leads partitions         in controlled shutdown
                          want_shut_down, and it leads none               stopped
                          both                                            stopped
    controlled shutdown   any, once it leads no partitions and all        stopped
                          active brokers have replayed that change

A stopped broker is fenced and told to shut down; its partitions got new leaders while it could still answer.
"""

from collections.abc import Sequence
from enum import Enum

from sskafka.metadata.brokers.lifecycle import begin_controlled_shutdown, fence_brokers, unfence_broker
from sskafka.metadata.brokers.registration import BrokerRegistration
from sskafka.metadata.brokers.sessions import BrokerSession, BrokerSessions
from sskafka.metadata.controller_result import ControllerResult
from sskafka.metadata.features import CORDONED_DIRECTORIES
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import BrokerRegistrationChangeRecord, MetadataRecord
from sskafka.metadata.replica_directories import changes_when_directories_fail
from sskafka.model.errors import ErrorCode
from sskafka.model.settings import Settings
from sskafka.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse


class BrokerState(Enum):
    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "in controlled shutdown"
    STOPPED = "stopped"

    @property
    def is_fenced(self) -> bool:
        return self in {BrokerState.FENCED, BrokerState.STOPPED}


def broker_heartbeat(
    image: ClusterImage, request: BrokerHeartbeatRequest, sessions: BrokerSessions, settings: Settings, now_ms: int
) -> ControllerResult[BrokerHeartbeatResponse]:
    """Decide the next state of the broker. `sessions` records the contact at once; it is not part of the decision."""
    broker = image.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        return ControllerResult((), BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    session = sessions.touch(broker.id, broker.epoch, now_ms, request.current_metadata_offset)
    state = _next_state(image, broker, request, session, sessions)
    records = [*_records_for(image, broker, state, settings)]
    if state is BrokerState.UNFENCED and not records:
        records += changes_when_directories_fail(image, broker, request.offline_log_dirs, settings)
    records += _cordon_changes(image, broker, request)
    if state is BrokerState.STOPPED:
        sessions.end(broker.id)
    elif state is BrokerState.CONTROLLED_SHUTDOWN and session.shutdown_offset is None:
        session.shutdown_offset = image.next_offset + len(records) - 1
    response = BrokerHeartbeatResponse(
        is_caught_up=_is_caught_up(broker, request),
        is_fenced=state.is_fenced,
        should_shut_down=state is BrokerState.STOPPED,
    )
    return ControllerResult(records, response)


def _cordon_changes(
    image: ClusterImage, broker: BrokerRegistration, request: BrokerHeartbeatRequest
) -> Sequence[MetadataRecord]:
    """Return the change of the directories in which the broker wants no new replicas; None means no change."""
    cordoned = request.cordoned_log_dirs
    if cordoned is None or set(cordoned) == set(broker.cordoned) or image.metadata_version < CORDONED_DIRECTORIES:
        return ()
    return [BrokerRegistrationChangeRecord(broker.id, broker.epoch, cordoned_log_dirs=sorted(cordoned))]


def _next_state(
    image: ClusterImage,
    broker: BrokerRegistration,
    request: BrokerHeartbeatRequest,
    session: BrokerSession,
    sessions: BrokerSessions,
) -> BrokerState:
    if broker.fenced:
        return _after_fenced(broker, request)
    if broker.in_controlled_shutdown:
        offset = session.shutdown_offset
        is_known = offset is not None and sessions.all_have_replayed(image, offset)
        is_done = is_known and not _leads_any(image, broker.id)
        return BrokerState.STOPPED if is_done else BrokerState.CONTROLLED_SHUTDOWN
    if request.want_shut_down:
        moves_first = not request.want_fence and _leads_any(image, broker.id)
        return BrokerState.CONTROLLED_SHUTDOWN if moves_first else BrokerState.STOPPED
    return BrokerState.FENCED if request.want_fence else BrokerState.UNFENCED


def _leads_any(image: ClusterImage, broker_id: int) -> bool:
    return any(state.leader == broker_id for _, _, state in image.partitions())


def _after_fenced(broker: BrokerRegistration, request: BrokerHeartbeatRequest) -> BrokerState:
    if request.want_shut_down:
        return BrokerState.STOPPED
    is_staying = not request.want_fence and not broker.in_controlled_shutdown  # a controlled shutdown is irreversible
    if is_staying and _is_caught_up(broker, request):
        return BrokerState.UNFENCED
    return BrokerState.FENCED


def _is_caught_up(broker: BrokerRegistration, request: BrokerHeartbeatRequest) -> bool:
    """Return whether the broker has replayed its own registration, whose offset is its broker epoch."""
    return request.current_metadata_offset >= broker.epoch


def _records_for(
    image: ClusterImage, broker: BrokerRegistration, state: BrokerState, settings: Settings
) -> Sequence[MetadataRecord]:
    match state:
        case BrokerState.FENCED | BrokerState.STOPPED:
            return fence_brokers(image, [broker.id], settings).records
        case BrokerState.UNFENCED:
            return unfence_broker(image, broker.id, settings).records
        case BrokerState.CONTROLLED_SHUTDOWN:
            return begin_controlled_shutdown(image, broker.id, settings).records
