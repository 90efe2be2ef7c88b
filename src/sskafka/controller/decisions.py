"""The table from requests to the controller's decisions.

Requests reach the active controller as messages, from its own node or forwarded by another. This table turns each one
into a function of the newest image. Beside the image, decisions use the sessions of brokers, which only the active
controller knows. Requests of brokers are decided here; client_decisions.py has those of clients.
"""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from sskafka.metadata.alter_partition import alter_partition
from sskafka.metadata.brokers.heartbeats import broker_heartbeat
from sskafka.metadata.brokers.lifecycle import (
    fence_brokers,
    register_broker,
    start_single_broker,
    unregister_broker,
)
from sskafka.metadata.brokers.sessions import BrokerSessions
from sskafka.metadata.controller_registration import register_controller
from sskafka.metadata.controller_result import ControllerResult, RandomBytes
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.producer_ids import allocate_producer_ids
from sskafka.metadata.replica_directories import assign_replicas_to_dirs
from sskafka.model.acl import ANONYMOUS, Caller
from sskafka.model.errors import ErrorCode
from sskafka.model.settings import Settings
from sskafka.runtime.clock import Clock
from sskafka.wire.apis import ApiKey
from sskafka.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from sskafka.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from sskafka.wire.schema import Message

if TYPE_CHECKING:
    from sskafka.controller.client_decisions import ClientDecisions

Decide = Callable[[ClusterImage], ControllerResult[Any]]
NewClientDecisions: TypeAlias = "Callable[[Settings, Clock, RandomBytes], ClientDecisions]"


class Decisions:
    def __init__(
        self,
        settings: Settings,
        cluster_id: str,
        clock: Clock,
        random: RandomBytes,
        sessions: BrokerSessions,
        client_decisions: "NewClientDecisions",
        *,
        is_alone: bool,
    ) -> None:
        """`is_alone`: this node is the only voter."""
        self._settings = settings
        self._is_alone = is_alone
        self._cluster_id = cluster_id
        self._clock = clock
        self._sessions = sessions
        self._client_decisions = client_decisions
        self._random = random
        self._by_key: dict[int, Callable[[ClusterImage, Any], ControllerResult[Any]]] = {
            ApiKey.ALLOCATE_PRODUCER_IDS: allocate_producer_ids,
            ApiKey.ALTER_PARTITION: lambda image, request: alter_partition(image, request, settings),
            ApiKey.ASSIGN_REPLICAS_TO_DIRS: lambda image, request: assign_replicas_to_dirs(image, request, settings),
            ApiKey.CONTROLLER_REGISTRATION: register_controller,
            ApiKey.BROKER_REGISTRATION: self._register,
            ApiKey.BROKER_HEARTBEAT: self._heartbeat,
            ApiKey.UNREGISTER_BROKER: self._unregister,
        }

    @cached_property
    def of_clients(self) -> "ClientDecisions":
        return self._client_decisions(self._settings, self._clock, self._random)

    def for_request(self, request: Message, caller: Caller | None = None) -> Decide:
        """Return the decision about a request of a client, or of a broker (None)."""
        key = request.SCHEMA.key
        assert key is not None
        if key not in self._by_key and key in self.of_clients.by_key_and_principal:
            decide_for = self.of_clients.by_key_and_principal[key]
            principal = ANONYMOUS if caller is None else caller.principal
            return lambda image: decide_for(image, request, principal)
        decide = self._by_key.get(key) or self.of_clients.by_key[key]
        return lambda image: decide(image, request)

    def fence_expired(self, image: ClusterImage) -> ControllerResult[None]:
        """Fence brokers whose sessions have expired; other brokers become leaders."""
        return fence_brokers(image, self._sessions.expired(image, self._now_ms()), self._settings)

    def _now_ms(self) -> int:
        return int(self._clock.monotonic_ms())

    def _register(
        self, image: ClusterImage, request: BrokerRegistrationRequest
    ) -> ControllerResult[BrokerRegistrationResponse]:
        now_ms = self._now_ms()
        if self._is_only_broker(image, request.broker_id):
            decision = start_single_broker(image, request, self._cluster_id, self._settings)
        else:
            may_be_alive = self._sessions.is_alive(request.broker_id, now_ms)
            decision = register_broker(
                image, request, self._cluster_id, self._settings, previous_may_be_alive=may_be_alive
            )
        if decision.response.error_code == ErrorCode.NONE:
            self._sessions.touch(request.broker_id, decision.response.broker_epoch, now_ms)
        return decision

    def _is_only_broker(self, image: ClusterImage, broker_id: int) -> bool:
        """Return whether this is the only broker, and part of the only voter: its earlier incarnation has ended."""
        return self._is_alone and broker_id == self._settings["node.id"] and set(image.brokers) <= {broker_id}

    def _heartbeat(self, image: ClusterImage, request: Any) -> ControllerResult[Any]:
        return broker_heartbeat(image, request, self._sessions, self._settings, self._now_ms())

    def _unregister(
        self, image: ClusterImage, request: UnregisterBrokerRequest
    ) -> ControllerResult[UnregisterBrokerResponse]:
        self._sessions.end(request.broker_id)
        return unregister_broker(image, request, self._settings)
