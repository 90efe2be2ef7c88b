"""The table from requests to the controller's decisions.

Requests reach the active controller as messages, from its own node or forwarded by another. This table turns each one
into a function of the newest image. Beside the image, decisions use the sessions of brokers, which only the active
controller knows.
"""

from collections.abc import Callable
from typing import Any

from sskafka.metadata.acls.changes import create_acls, delete_acls
from sskafka.metadata.alter_partition import alter_partition
from sskafka.metadata.brokers.heartbeats import broker_heartbeat
from sskafka.metadata.brokers.lifecycle import (
    fence_brokers,
    register_broker,
    start_single_broker,
    unregister_broker,
)
from sskafka.metadata.brokers.sessions import BrokerSessions
from sskafka.metadata.client_quotas import alter_client_quotas
from sskafka.metadata.config_changes import alter_configs, incremental_alter_configs
from sskafka.metadata.controller_registration import register_controller
from sskafka.metadata.controller_result import ControllerResult, RandomBytes
from sskafka.metadata.delegation_tokens import (
    TokenSettings,
    create_delegation_token,
    expire_delegation_token,
    remove_expired_tokens,
    renew_delegation_token,
)
from sskafka.metadata.elect_leaders import elect_leaders, plan_leader_rebalance
from sskafka.metadata.feature_updates import update_features
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.producer_ids import allocate_producer_ids
from sskafka.metadata.reassignments import alter_partition_reassignments
from sskafka.metadata.replica_directories import assign_replicas_to_dirs
from sskafka.metadata.scram_credentials import alter_user_scram_credentials
from sskafka.metadata.topics import create_partitions, create_topics, delete_topics
from sskafka.model.acl import ANONYMOUS, Caller
from sskafka.model.errors import ErrorCode
from sskafka.model.settings import Settings
from sskafka.runtime.clock import Clock
from sskafka.wire.apis import ApiKey
from sskafka.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from sskafka.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from sskafka.wire.schema import Message

Decide = Callable[[ClusterImage], ControllerResult[Any]]


class Decisions:
    def __init__(
        self,
        settings: Settings,
        cluster_id: str,
        clock: Clock,
        random: RandomBytes,
        sessions: BrokerSessions,
        *,
        is_alone: bool,
    ) -> None:
        """`is_alone`: this node is the only voter."""
        self._settings = settings
        self._is_alone = is_alone
        self._cluster_id = cluster_id
        self._clock = clock
        self._sessions = sessions
        self._by_key: dict[int, Callable[[ClusterImage, Any], ControllerResult[Any]]] = {
            ApiKey.CREATE_TOPICS: lambda image, request: create_topics(image, request, settings, random),
            ApiKey.DELETE_TOPICS: lambda image, request: delete_topics(image, request, settings),
            ApiKey.CREATE_PARTITIONS: lambda image, request: create_partitions(image, request, random),
            ApiKey.ALTER_CONFIGS: lambda image, request: alter_configs(image, request, settings),
            ApiKey.INCREMENTAL_ALTER_CONFIGS: lambda image, request: incremental_alter_configs(
                image, request, settings
            ),
            ApiKey.CREATE_ACLS: lambda image, request: create_acls(image, request, random),
            ApiKey.DELETE_ACLS: delete_acls,
            ApiKey.ALLOCATE_PRODUCER_IDS: allocate_producer_ids,
            ApiKey.ALTER_PARTITION: lambda image, request: alter_partition(image, request, settings),
            ApiKey.ELECT_LEADERS: lambda image, request: elect_leaders(image, request, settings),
            ApiKey.ALTER_PARTITION_REASSIGNMENTS: lambda image, request: alter_partition_reassignments(
                image, request, settings
            ),
            ApiKey.UPDATE_FEATURES: lambda image, request: update_features(image, request, settings),
            ApiKey.ASSIGN_REPLICAS_TO_DIRS: lambda image, request: assign_replicas_to_dirs(image, request, settings),
            ApiKey.ALTER_CLIENT_QUOTAS: alter_client_quotas,
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS: alter_user_scram_credentials,
            ApiKey.CONTROLLER_REGISTRATION: register_controller,
            ApiKey.BROKER_REGISTRATION: self._register,
            ApiKey.BROKER_HEARTBEAT: self._heartbeat,
            ApiKey.UNREGISTER_BROKER: self._unregister,
        }
        self._by_key_and_principal = self._token_decisions(random)

    def for_request(self, request: Message, caller: Caller | None = None) -> Decide:
        """Return the decision about a request of a client, or of a broker (None)."""
        key = request.SCHEMA.key
        assert key is not None
        if key in self._by_key_and_principal:
            decide_for = self._by_key_and_principal[key]
            principal = ANONYMOUS if caller is None else caller.principal
            return lambda image: decide_for(image, request, principal)
        decide = self._by_key[key]
        return lambda image: decide(image, request)

    def _token_decisions(self, random: RandomBytes) -> dict[int, Callable[..., ControllerResult[Any]]]:
        """Return the decisions that depend on who asks."""
        tokens = TokenSettings(
            self._settings["delegation.token.secret.key"],
            self._settings["delegation.token.max.lifetime.ms"],
            self._settings["delegation.token.expiry.time.ms"],
        )
        now_ms = self._clock.now_ms
        return {
            ApiKey.CREATE_DELEGATION_TOKEN: lambda image, request, principal: create_delegation_token(
                image, request, principal, tokens, now_ms(), random
            ),
            ApiKey.RENEW_DELEGATION_TOKEN: lambda image, request, principal: renew_delegation_token(
                image, request, principal, tokens, now_ms()
            ),
            ApiKey.EXPIRE_DELEGATION_TOKEN: lambda image, request, principal: expire_delegation_token(
                image, request, principal, tokens, now_ms()
            ),
        }

    def remove_expired_tokens(self, image: ClusterImage) -> ControllerResult[None]:
        return remove_expired_tokens(image, self._clock.now_ms())

    def fence_expired(self, image: ClusterImage) -> ControllerResult[None]:
        """Fence brokers whose sessions have expired; other brokers become leaders."""
        return fence_brokers(image, self._sessions.expired(image, self._now_ms()), self._settings)

    def rebalance_leaders(self, image: ClusterImage) -> ControllerResult[bool]:
        """Elect preferred leaders; the response is whether more elections are due."""
        return plan_leader_rebalance(image, self._settings)

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
