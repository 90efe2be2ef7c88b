"""Decisions about requests of clients: topics, configs, ACLs, users, tokens, quotas, leaders and features.

A broker starts without them, so broker/on_demand.py imports this module at the first such request.
"""

from collections.abc import Callable
from typing import Any

from sskafka.metadata.acls.changes import create_acls, delete_acls
from sskafka.metadata.client_quotas import alter_client_quotas
from sskafka.metadata.config_changes import alter_configs, incremental_alter_configs
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
from sskafka.metadata.reassignments import alter_partition_reassignments
from sskafka.metadata.scram_credentials import alter_user_scram_credentials
from sskafka.metadata.topics import create_partitions, create_topics, delete_topics
from sskafka.model.settings import Settings
from sskafka.runtime.clock import Clock
from sskafka.wire.apis import ApiKey


class ClientDecisions:
    def __init__(self, settings: Settings, clock: Clock, random: RandomBytes) -> None:
        self._settings = settings
        self._clock = clock
        self.by_key: dict[int, Callable[[ClusterImage, Any], ControllerResult[Any]]] = {
            ApiKey.CREATE_TOPICS: lambda image, request: create_topics(image, request, settings, random),
            ApiKey.DELETE_TOPICS: lambda image, request: delete_topics(image, request, settings),
            ApiKey.CREATE_PARTITIONS: lambda image, request: create_partitions(image, request, random),
            ApiKey.ALTER_CONFIGS: lambda image, request: alter_configs(image, request, settings),
            ApiKey.INCREMENTAL_ALTER_CONFIGS: lambda image, request: incremental_alter_configs(
                image, request, settings
            ),
            ApiKey.CREATE_ACLS: lambda image, request: create_acls(image, request, random),
            ApiKey.DELETE_ACLS: delete_acls,
            ApiKey.ELECT_LEADERS: lambda image, request: elect_leaders(image, request, settings),
            ApiKey.ALTER_PARTITION_REASSIGNMENTS: lambda image, request: alter_partition_reassignments(
                image, request, settings
            ),
            ApiKey.UPDATE_FEATURES: lambda image, request: update_features(image, request, settings),
            ApiKey.ALTER_CLIENT_QUOTAS: alter_client_quotas,
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS: alter_user_scram_credentials,
        }
        self.by_key_and_principal = self._token_decisions(random)
        """Decisions that depend on who asks."""

    def _token_decisions(self, random: RandomBytes) -> dict[int, Callable[..., ControllerResult[Any]]]:
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

    def rebalance_leaders(self, image: ClusterImage) -> ControllerResult[bool]:
        """Elect preferred leaders; the response is whether more elections are due."""
        return plan_leader_rebalance(image, self._settings)
