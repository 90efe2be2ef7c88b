"""APIs that few clients ask for: their handlers and messages are imported when the first of them is asked for."""

from sskafka.model.settings import Settings
from sskafka.servers.kafka.authorization import Operation
from sskafka.servers.kafka.cluster_view import ClusterView
from sskafka.servers.kafka.controller import Controller
from sskafka.servers.kafka.first_need import register_at_first_use
from sskafka.servers.kafka.registry import Registry
from sskafka.wire.apis import ApiKey

DESCRIBE, ALTER, CLUSTER_ACTION = Operation.DESCRIBE, Operation.ALTER, Operation.CLUSTER_ACTION

SECURITY_APIS = {
    ApiKey.SASL_HANDSHAKE: None,
    ApiKey.SASL_AUTHENTICATE: None,
    ApiKey.DESCRIBE_ACLS: DESCRIBE,
    ApiKey.CREATE_ACLS: ALTER,
    ApiKey.DELETE_ACLS: ALTER,
    ApiKey.CREATE_DELEGATION_TOKEN: None,
    ApiKey.RENEW_DELEGATION_TOKEN: None,
    ApiKey.EXPIRE_DELEGATION_TOKEN: None,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: None,
}
SHARE_AND_STREAMS_GROUP_APIS = {
    ApiKey.SHARE_GROUP_HEARTBEAT: None,
    ApiKey.SHARE_GROUP_DESCRIBE: None,
    ApiKey.SHARE_FETCH: None,
    ApiKey.SHARE_ACKNOWLEDGE: None,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: CLUSTER_ACTION,
    ApiKey.READ_SHARE_GROUP_STATE: CLUSTER_ACTION,
    ApiKey.WRITE_SHARE_GROUP_STATE: CLUSTER_ACTION,
    ApiKey.DELETE_SHARE_GROUP_STATE: CLUSTER_ACTION,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: CLUSTER_ACTION,
    ApiKey.STREAMS_GROUP_HEARTBEAT: None,
    ApiKey.STREAMS_GROUP_DESCRIBE: None,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: None,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: None,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: None,
}
TELEMETRY_APIS = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: None, ApiKey.PUSH_TELEMETRY: None}
CREDENTIAL_APIS = {ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: DESCRIBE, ApiKey.ALTER_USER_SCRAM_CREDENTIALS: ALTER}
VOTER_APIS = {ApiKey.ADD_RAFT_VOTER: ALTER, ApiKey.REMOVE_RAFT_VOTER: ALTER}


def register_rare_broker_apis(
    registry: Registry, view: ClusterView, controller: Controller, settings: Settings
) -> None:
    _register_security(registry)
    _register_quotas(registry, controller, is_broker=True)
    _register_credentials(registry, controller)
    _register_voters(registry, view, settings, is_broker=True)
    _register_groups_and_telemetry(registry)
    _register_config_resources(registry, view)


def register_rare_controller_apis(
    registry: Registry, view: ClusterView, controller: Controller, settings: Settings
) -> None:
    _register_security(registry)
    _register_quotas(registry, controller, is_broker=False)
    _register_credentials(registry, controller)
    _register_voters(registry, view, settings, is_broker=False)


def _register_security(registry: Registry) -> None:
    def add_handlers(made: Registry) -> None:
        from sskafka.servers.kafka.handlers.absent_features import register_security_refusals  # noqa: PLC0415

        register_security_refusals(made)

    register_at_first_use(registry, SECURITY_APIS, add_handlers)


def _register_groups_and_telemetry(registry: Registry) -> None:
    def add_handlers(made: Registry) -> None:
        from sskafka.servers.kafka.handlers.absent_features import register_group_refusals, register_telemetry  # noqa: PLC0415

        register_group_refusals(made)
        register_telemetry(made)

    register_at_first_use(registry, SHARE_AND_STREAMS_GROUP_APIS, add_handlers)
    # Kafka lists these only where a plugin collects what clients push.
    register_at_first_use(registry, TELEMETRY_APIS, add_handlers, is_advertised=False)


def _register_quotas(registry: Registry, controller: Controller, *, is_broker: bool) -> None:
    def add_handlers(made: Registry) -> None:
        from sskafka.servers.kafka.handlers.client_quotas import ClientQuotaHandlers  # noqa: PLC0415

        ClientQuotaHandlers(controller).register(made)

    register_at_first_use(registry, {ApiKey.ALTER_CLIENT_QUOTAS: Operation.ALTER_CONFIGS}, add_handlers)
    if is_broker:
        register_at_first_use(registry, {ApiKey.DESCRIBE_CLIENT_QUOTAS: Operation.DESCRIBE_CONFIGS}, add_handlers)


def _register_credentials(registry: Registry, controller: Controller) -> None:
    def add_handlers(made: Registry) -> None:
        from sskafka.servers.kafka.handlers.scram_credentials import ScramCredentialHandlers  # noqa: PLC0415

        ScramCredentialHandlers(controller).register(made)

    register_at_first_use(registry, CREDENTIAL_APIS, add_handlers)


def _register_voters(registry: Registry, view: ClusterView, settings: Settings, *, is_broker: bool) -> None:
    listeners = (*settings.controller_listeners, *settings.listeners)

    def add_handlers(made: Registry) -> None:
        from sskafka.servers.kafka.handlers.raft_voters import RaftVoterHandlers  # noqa: PLC0415

        RaftVoterHandlers(view, listeners[0].name).register(made)

    register_at_first_use(registry, VOTER_APIS, add_handlers)
    if not is_broker:
        register_at_first_use(registry, {ApiKey.UPDATE_RAFT_VOTER: CLUSTER_ACTION}, add_handlers)


def _register_config_resources(registry: Registry, view: ClusterView) -> None:
    def add_handlers(made: Registry) -> None:
        from sskafka.servers.kafka.handlers.config_resources import ConfigResourcesHandler  # noqa: PLC0415

        ConfigResourcesHandler(view).register(made)

    register_at_first_use(registry, {ApiKey.LIST_CONFIG_RESOURCES: Operation.DESCRIBE_CONFIGS}, add_handlers)
