"""Parts that are imported when they are first used, because most brokers start without them.

The first access to `on_demand.GroupHandlers` imports its module; later accesses are plain attribute lookups. Type
checkers see the imports below. This is the only module of the broker that postpones imports of SSKafka's modules:
without it, a start takes a quarter more CPU time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sskafka.broker.configured_topics import ConfiguredTopics as ConfiguredTopics
    from sskafka.broker.listener_security import SecureListeners as SecureListeners
    from sskafka.broker.security_changes import SecurityChanges as SecurityChanges
    from sskafka.client.cluster import Cluster as Cluster
    from sskafka.controller.client_decisions import ClientDecisions as ClientDecisions
    from sskafka.coordination.context import CoordinatorEnvironment as CoordinatorEnvironment
    from sskafka.coordination.group_coordinator import GroupCoordinator as GroupCoordinator
    from sskafka.coordination.loading import LoadCounters as LoadCounters
    from sskafka.coordination.loading import LoadingTurns as LoadingTurns
    from sskafka.coordination.transaction_coordinator import TransactionCoordinator as TransactionCoordinator
    from sskafka.coordination.transaction_markers import MarkerSender as MarkerSender
    from sskafka.coordination.transaction_markers import MarkerWriter as MarkerWriter
    from sskafka.coordination.transaction_verifier import TransactionVerifier as TransactionVerifier
    from sskafka.lab import LAB_SETTINGS as LAB_SETTINGS
    from sskafka.lab.quorum_files import journal_path as journal_path
    from sskafka.lab.quorum_files import maybe_keep_files as maybe_keep_files
    from sskafka.lab.quorum_files import quorum_state_path as quorum_state_path
    from sskafka.lab.votes import VoteAnswers as VoteAnswers
    from sskafka.replication.directory_reports import DirectoryReports as DirectoryReports
    from sskafka.replication.log_cleaner import LogCleaner as LogCleaner
    from sskafka.replication.log_scrubber import LogScrubber as LogScrubber
    from sskafka.replication.replica_moves import ReplicaMoves as ReplicaMoves
    from sskafka.runtime.tls.settings import tls_options as tls_options
    from sskafka.servers.adr.endpoints import AdrEndpoints as AdrEndpoints
    from sskafka.servers.adr.listener import AdrListener as AdrListener
    from sskafka.servers.adr.local_partitions import LocalPartitions as LocalPartitions
    from sskafka.servers.adr.remote_partitions import RemotePartitions as RemotePartitions
    from sskafka.servers.adr.service import AdrService as AdrService
    from sskafka.servers.audit_log import AuditLog as AuditLog
    from sskafka.servers.http.configuration import Configuration as Configuration
    from sskafka.servers.http.configuration import HttpSecurity as HttpSecurity
    from sskafka.servers.http.configuration import LogDirectories as LogDirectories
    from sskafka.servers.http.configuration import OtlpTarget as OtlpTarget
    from sskafka.servers.http.supervisor import HttpServerProcess as HttpServerProcess
    from sskafka.servers.kafka.acl_authorizer import AclAuthorizer as AclAuthorizer
    from sskafka.servers.kafka.handlers import absent_features as absent_features
    from sskafka.servers.kafka.handlers import sasl as sasl
    from sskafka.servers.kafka.handlers.acls import AclHandlers as AclHandlers
    from sskafka.servers.kafka.handlers.act_for_client import ActForClientHandler as ActForClientHandler
    from sskafka.servers.kafka.handlers.administration import AdministrationHandlers as AdministrationHandlers
    from sskafka.servers.kafka.handlers.broker_load import BrokerLoadHandler as BrokerLoadHandler
    from sskafka.servers.kafka.handlers.client_quotas import ClientQuotaHandlers as ClientQuotaHandlers
    from sskafka.servers.kafka.handlers.cluster import ClusterHandler as ClusterHandler
    from sskafka.servers.kafka.handlers.config_resources import ConfigResourcesHandler as ConfigResourcesHandler
    from sskafka.servers.kafka.handlers.configs import ConfigHandlers as ConfigHandlers
    from sskafka.servers.kafka.handlers.consumer_groups import ConsumerGroupHandlers as ConsumerGroupHandlers
    from sskafka.servers.kafka.handlers.controller_apis import ControllerHandlers as ControllerHandlers
    from sskafka.servers.kafka.handlers.delegation_tokens import DelegationTokenHandlers as DelegationTokenHandlers
    from sskafka.servers.kafka.handlers.delete_records import DeleteRecordsHandler as DeleteRecordsHandler
    from sskafka.servers.kafka.handlers.find_coordinator import FindCoordinatorHandler as FindCoordinatorHandler
    from sskafka.servers.kafka.handlers.group_offsets import GroupOffsetHandlers as GroupOffsetHandlers
    from sskafka.servers.kafka.handlers.groups import GroupHandlers as GroupHandlers
    from sskafka.servers.kafka.handlers.log_dirs import LogDirsHandler as LogDirsHandler
    from sskafka.servers.kafka.handlers.offsets import OffsetHandlers as OffsetHandlers
    from sskafka.servers.kafka.handlers.raft_voters import RaftVoterHandlers as RaftVoterHandlers
    from sskafka.servers.kafka.handlers.readers import ReaderHandlers as ReaderHandlers
    from sskafka.servers.kafka.handlers.replica_positions import ReplicaPositionsHandler as ReplicaPositionsHandler
    from sskafka.servers.kafka.handlers.scram_credentials import ScramCredentialHandlers as ScramCredentialHandlers
    from sskafka.servers.kafka.handlers.segments import SegmentHandler as SegmentHandler
    from sskafka.servers.kafka.handlers.topic_partitions import TopicPartitionsHandler as TopicPartitionsHandler
    from sskafka.servers.kafka.handlers.topics import TopicHandlers as TopicHandlers
    from sskafka.servers.kafka.handlers.transaction_descriptions import (
        TransactionDescriptionHandlers as TransactionDescriptionHandlers,
    )
    from sskafka.servers.kafka.handlers.transaction_markers import TransactionMarkerHandler as TransactionMarkerHandler
    from sskafka.servers.kafka.handlers.transaction_offsets import TransactionOffsetHandler as TransactionOffsetHandler
    from sskafka.servers.kafka.handlers.transactional_produce import RetryPauses as RetryPauses
    from sskafka.servers.kafka.handlers.transactional_produce import TransactionalProduce as TransactionalProduce
    from sskafka.servers.kafka.handlers.transactions import TransactionHandlers as TransactionHandlers
    from sskafka.servers.kafka.internal_records import check_internal_records as check_internal_records
    from sskafka.servers.local.answers import NodeAnswers as NodeAnswers
    from sskafka.servers.local.changing_options import ChangingOptions as ChangingOptions
    from sskafka.servers.local.logins import LoginAnswers as LoginAnswers
    from sskafka.storage.partition_files import PartitionFiles as PartitionFiles

_MODULES = {
    "ConfiguredTopics": "sskafka.broker.configured_topics",
    "SecureListeners": "sskafka.broker.listener_security",
    "SecurityChanges": "sskafka.broker.security_changes",
    "Cluster": "sskafka.client.cluster",
    "ClientDecisions": "sskafka.controller.client_decisions",
    "AdministrationHandlers": "sskafka.servers.kafka.handlers.administration",
    "ControllerHandlers": "sskafka.servers.kafka.handlers.controller_apis",
    "CoordinatorEnvironment": "sskafka.coordination.context",
    "GroupCoordinator": "sskafka.coordination.group_coordinator",
    "LoadCounters": "sskafka.coordination.loading",
    "LoadingTurns": "sskafka.coordination.loading",
    "TransactionCoordinator": "sskafka.coordination.transaction_coordinator",
    "MarkerSender": "sskafka.coordination.transaction_markers",
    "MarkerWriter": "sskafka.coordination.transaction_markers",
    "TransactionVerifier": "sskafka.coordination.transaction_verifier",
    "journal_path": "sskafka.lab.quorum_files",
    "maybe_keep_files": "sskafka.lab.quorum_files",
    "quorum_state_path": "sskafka.lab.quorum_files",
    "LAB_SETTINGS": "sskafka.lab",
    "VoteAnswers": "sskafka.lab.votes",
    "DirectoryReports": "sskafka.replication.directory_reports",
    "LogCleaner": "sskafka.replication.log_cleaner",
    "LogScrubber": "sskafka.replication.log_scrubber",
    "ReplicaMoves": "sskafka.replication.replica_moves",
    "tls_options": "sskafka.runtime.tls.settings",
    "AdrEndpoints": "sskafka.servers.adr.endpoints",
    "AdrListener": "sskafka.servers.adr.listener",
    "LocalPartitions": "sskafka.servers.adr.local_partitions",
    "RemotePartitions": "sskafka.servers.adr.remote_partitions",
    "AdrService": "sskafka.servers.adr.service",
    "AuditLog": "sskafka.servers.audit_log",
    "Configuration": "sskafka.servers.http.configuration",
    "HttpSecurity": "sskafka.servers.http.configuration",
    "LogDirectories": "sskafka.servers.http.configuration",
    "OtlpTarget": "sskafka.servers.http.configuration",
    "HttpServerProcess": "sskafka.servers.http.supervisor",
    "AclAuthorizer": "sskafka.servers.kafka.acl_authorizer",
    "ActForClientHandler": "sskafka.servers.kafka.handlers.act_for_client",
    "AclHandlers": "sskafka.servers.kafka.handlers.acls",
    "absent_features": "sskafka.servers.kafka.handlers.absent_features",
    "BrokerLoadHandler": "sskafka.servers.kafka.handlers.broker_load",
    "ClientQuotaHandlers": "sskafka.servers.kafka.handlers.client_quotas",
    "ConfigResourcesHandler": "sskafka.servers.kafka.handlers.config_resources",
    "ConsumerGroupHandlers": "sskafka.servers.kafka.handlers.consumer_groups",
    "DelegationTokenHandlers": "sskafka.servers.kafka.handlers.delegation_tokens",
    "FindCoordinatorHandler": "sskafka.servers.kafka.handlers.find_coordinator",
    "GroupOffsetHandlers": "sskafka.servers.kafka.handlers.group_offsets",
    "GroupHandlers": "sskafka.servers.kafka.handlers.groups",
    "sasl": "sskafka.servers.kafka.handlers.sasl",
    "RaftVoterHandlers": "sskafka.servers.kafka.handlers.raft_voters",
    "ClusterHandler": "sskafka.servers.kafka.handlers.cluster",
    "ConfigHandlers": "sskafka.servers.kafka.handlers.configs",
    "DeleteRecordsHandler": "sskafka.servers.kafka.handlers.delete_records",
    "LogDirsHandler": "sskafka.servers.kafka.handlers.log_dirs",
    "OffsetHandlers": "sskafka.servers.kafka.handlers.offsets",
    "ReaderHandlers": "sskafka.servers.kafka.handlers.readers",
    "ReplicaPositionsHandler": "sskafka.servers.kafka.handlers.replica_positions",
    "SegmentHandler": "sskafka.servers.kafka.handlers.segments",
    "TopicPartitionsHandler": "sskafka.servers.kafka.handlers.topic_partitions",
    "TopicHandlers": "sskafka.servers.kafka.handlers.topics",
    "ScramCredentialHandlers": "sskafka.servers.kafka.handlers.scram_credentials",
    "TransactionDescriptionHandlers": "sskafka.servers.kafka.handlers.transaction_descriptions",
    "TransactionMarkerHandler": "sskafka.servers.kafka.handlers.transaction_markers",
    "TransactionOffsetHandler": "sskafka.servers.kafka.handlers.transaction_offsets",
    "RetryPauses": "sskafka.servers.kafka.handlers.transactional_produce",
    "TransactionalProduce": "sskafka.servers.kafka.handlers.transactional_produce",
    "TransactionHandlers": "sskafka.servers.kafka.handlers.transactions",
    "check_internal_records": "sskafka.servers.kafka.internal_records",
    "NodeAnswers": "sskafka.servers.local.answers",
    "ChangingOptions": "sskafka.servers.local.changing_options",
    "LoginAnswers": "sskafka.servers.local.logins",
    "PartitionFiles": "sskafka.storage.partition_files",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(_MODULES[name])
    part = globals()[name] = getattr(module, name, module)
    return part
