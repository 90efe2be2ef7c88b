"""TxnOffsetCommit: offsets of a group that take effect when a transaction commits.

The group coordinator appends the offsets with the id of the producer. Like the leader of any partition, it first asks
the transaction coordinator whether the transaction is open in this partition of `__consumer_offsets`. Up to version 4,
the client has added the partition beforehand (AddOffsetsToTxn); from version 5 on, this request adds it.
"""

import asyncio
from collections.abc import Callable

from sskafka.coordination.completions import FutureCompletion
from sskafka.coordination.group_coordinator import GroupCoordinator
from sskafka.coordination.internal_topics import CONSUMER_OFFSETS
from sskafka.coordination.transaction_verifier import Outcome, Question, TransactionVerifier
from sskafka.groups.group import OffsetCommitter
from sskafka.groups.offset_requests import OffsetCommit
from sskafka.metadata.image import ClusterImage
from sskafka.model.acl import AclOperation
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import ProducerIdAndEpoch, TopicPartition
from sskafka.replication.partition import Partition
from sskafka.replication.replica_manager import ReplicaManager
from sskafka.servers.kafka.error_mapping import error_code_of
from sskafka.servers.kafka.handlers.transaction_refusals import refusal_for_client
from sskafka.servers.kafka.request import Request
from sskafka.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

ADDS_FROM = 5
ABORTABLE_KNOWN_FROM = 4


class TransactionOffsetHandler:
    def __init__(
        self,
        replicas: ReplicaManager,
        groups: GroupCoordinator,
        verifier: TransactionVerifier,
        image: Callable[[], ClusterImage],
    ) -> None:
        self._replicas = replicas
        self._groups = groups
        self._verifier = verifier
        self._image = image

    async def commit(self, message: TxnOffsetCommitRequest, request: Request) -> TxnOffsetCommitResponse:
        outcome = self._refused(message, request)
        commits = [
            OffsetCommit(
                target, requested.committed_offset, requested.committed_leader_epoch, requested.committed_metadata
            )
            for topic in message.topics
            for requested in topic.partitions
            if (target := TopicPartition(topic.name, requested.partition_index)) not in outcome
        ]
        if commits:
            try:
                outcome |= await self._commit(message, commits, request.version)
            except Exception as error:
                outcome |= dict.fromkeys((commit.partition for commit in commits), error_code_of(error)[0])
        return _response(message, outcome)

    def _refused(self, message: TxnOffsetCommitRequest, request: Request) -> Outcome:
        targets = [
            TopicPartition(topic.name, requested.partition_index)
            for topic in message.topics
            for requested in topic.partitions
        ]
        if not request.may_on_transactional_id(AclOperation.WRITE, message.transactional_id):
            return dict.fromkeys(targets, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        if not request.may_on_group(AclOperation.READ, message.group_id):
            return dict.fromkeys(targets, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        image, refused = self._image(), {}
        for target in targets:
            if not request.may_on_topic(AclOperation.READ, target.topic):
                refused[target] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif image.partition(*target) is None:
                refused[target] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return refused

    async def _commit(self, message: TxnOffsetCommitRequest, commits: list[OffsetCommit], version: int) -> Outcome:
        if not message.group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        producer = ProducerIdAndEpoch(message.producer_id, message.producer_epoch)
        partition = self._partition_of(message.group_id)
        producers = partition.producers
        must_verify = producers.verifies_transactions or version >= ADDS_FROM
        if must_verify and not producers.has_open_transaction(*producer):
            await self._verify(partition, message.transactional_id, producer, version)
        completion = FutureCompletion()
        committer = OffsetCommitter(message.member_id, message.group_instance_id, message.generation_id)

        self._groups.commit_offsets_in_transaction(message.group_id, committer, commits, producer, completion)
        errors: list[ErrorCode] = await completion.future
        return dict(zip((commit.partition for commit in commits), errors, strict=True))

    def _partition_of(self, group_id: str) -> Partition:
        index = self._groups.runtime.partition_of(group_id)
        partition = None if index is None else self._replicas.maybe_find(CONSUMER_OFFSETS, index)
        if partition is None or not partition.is_leader:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return partition

    async def _verify(
        self, partition: Partition, transactional_id: str, producer: ProducerIdAndEpoch, version: int
    ) -> None:
        """Return when the transaction is verified. The caller must not await anything between that and the append.

        A marker, or the refusal of another commit of the same transaction, may cancel the verification while the
        coordinator is being asked; then ask again."""
        producers, adds = partition.producers, version >= ADDS_FROM
        is_open = False
        while not is_open:
            if not partition.is_leader:
                raise KafkaError(ErrorCode.NOT_COORDINATOR)
            verification = producers.begin_verification(*producer, supports_epoch_bump=adds)
            error = _for_client(await self._ask_coordinator(partition, transactional_id, producer, adds), version)
            if error is not ErrorCode.NONE:
                producers.give_up_verification(verification)
                raise KafkaError(error)
            is_open = producers.verified(verification)

    async def _ask_coordinator(
        self, partition: Partition, transactional_id: str, producer: ProducerIdAndEpoch, adds: bool
    ) -> ErrorCode:
        answered: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        target = partition.topic_partition
        self._verifier.ask(Question(transactional_id, producer, [target], adds, answered.set_result))
        return (await answered)[target]


def _for_client(error: ErrorCode, version: int) -> ErrorCode:
    if error is ErrorCode.COORDINATOR_NOT_AVAILABLE:
        return error  # __transaction_state does not exist, or its partition has no leader; clients retry
    return refusal_for_client(
        error,
        away=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        adds=version >= ADDS_FROM,
        knows_abortable=version >= ABORTABLE_KNOWN_FROM,
    )


def _response(message: TxnOffsetCommitRequest, outcome: Outcome) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                topic.name,
                [
                    TxnOffsetCommitResponsePartition(
                        requested.partition_index, outcome[TopicPartition(topic.name, requested.partition_index)]
                    )
                    for requested in topic.partitions
                ],
            )
            for topic in message.topics
        ]
    )
