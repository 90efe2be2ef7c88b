"""The groups of one partition of __consumer_offsets: one store for groups of every kind, and their offsets.

`replay` takes in what the log says; requests come through the parts (`classic`, `offset_requests`), which share this
store. An offset of an unknown group makes one that never had members; a group with neither members nor offsets is
forgotten when offsets are next looked through.
"""

from collections.abc import Callable, Iterable, Iterator

from sskafka.groups import log_records
from sskafka.groups.classic_group import ClassicGroup, State
from sskafka.groups.classic_rebalance import ClassicRebalance
from sskafka.groups.classic_requests import ClassicRequests
from sskafka.groups.group import Committer, Group
from sskafka.groups.group_settings import GroupSettings
from sskafka.groups.offset_requests import OffsetCommit, OffsetRequests
from sskafka.groups.offsets import OffsetStore
from sskafka.model.coordination import Answer, Asker, Decision, StateRecord, Timers, TransactionalProducer
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition

NO_PRODUCER = -1
_EXPIRY = "expiry"


class GroupMachine:
    def __init__(self, settings: GroupSettings, timers: Timers, new_uuid: Callable[[], str]) -> None:
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetStore()
        self.offset_requests = OffsetRequests(self.offsets, self.groups.get, self._create_classic, settings)
        self._settings = settings
        self._timers = timers
        self._rebalance = ClassicRebalance(self.groups, settings, timers)
        self.classic = ClassicRequests(self._find_classic, self._create_classic, self._rebalance, settings, new_uuid)

    # -- the log

    def replay(self, record: StateRecord, producer: TransactionalProducer | None) -> None:
        match log_records.record_type(record.key):
            case log_records.LEGACY_OFFSET | log_records.OFFSET:
                self._replay_offset(record, producer)
            case log_records.GROUP:
                self._replay_group(record)
            case _:
                pass  # of kinds that this software does not know

    def _replay_offset(self, record: StateRecord, producer: TransactionalProducer | None) -> None:
        group_id, partition = log_records.read_offset_key(record.key)
        offset = log_records.read_offset_value(record.value) if record.value is not None else None
        self.offsets.replay(group_id, partition, offset, producer.producer_id if producer else NO_PRODUCER)
        if offset is not None and producer is None and group_id not in self.groups:
            self.groups[group_id] = ClassicGroup(group_id)

    def _replay_group(self, record: StateRecord) -> None:
        group_id = log_records.read_group_key(record.key)
        if record.value is not None:
            self.groups[group_id] = ClassicGroup.from_value(group_id, log_records.read_group_value(record.value))
            return
        group = self.groups.pop(group_id, None)
        if isinstance(group, ClassicGroup):
            self._rebalance.forget_group(group)

    def replay_end_of_transaction(self, producer: TransactionalProducer, is_committed: bool) -> None:
        for group_id in self.offsets.end_transaction(producer.producer_id, is_committed):
            if group_id not in self.groups:
                self.groups[group_id] = ClassicGroup(group_id)

    def start(self, now_ms: int) -> Decision:
        decision = Decision(is_replayed=False)
        for group in self.groups.values():
            if isinstance(group, ClassicGroup):
                self._rebalance.resume(group, decision, now_ms)
        self._expire_later()
        return decision

    def stop(self) -> list[Asker]:
        return [asker for group in self.groups.values() for asker in group.waiting()]

    # -- groups of any kind

    def find(self, group_id: str) -> Group:
        group = self.groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        return group

    def listed(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> Iterator[Group]:
        """Those in one of the states and of one of the types, in any spelling; no filter means all."""
        wanted_states = {state.lower() for state in states}
        wanted_types = {kind.lower() for kind in types}
        for group in self.groups.values():
            is_wanted = not wanted_states or group.state_name.lower() in wanted_states
            if is_wanted and (not wanted_types or group.type_name in wanted_types):
                yield group

    def delete_group(self, group_id: str, asker: Asker) -> Decision:
        group = self.find(group_id)
        if not group.is_empty:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
        return Decision(self._tombstones_of(group), [Answer(asker, ErrorCode.NONE)])

    def _tombstones_of(self, group: Group) -> list[StateRecord]:
        return [*self.offset_requests.delete_all(group.group_id), log_records.group_tombstone(group.group_id)]

    def commit_offsets(
        self,
        group_id: str,
        committer: Committer,
        commits: Iterable[OffsetCommit],
        retention_ms: int,
        asker: Asker,
        now_ms: int,
    ) -> Decision:
        """Answered with the outcome of each commit. It is a sign of life of the member that commits."""
        group = self.offset_requests.check_committer(group_id, committer, now_ms)
        records, outcomes = self.offset_requests.commit(group_id, commits, retention_ms, now_ms)
        if isinstance(group, ClassicGroup):
            self.classic.renew_session_of(group, committer.member_id)
        return Decision(records, [Answer(asker, outcomes)])

    def topics_deleted(self, names: Iterable[str]) -> Decision:
        return self.offset_requests.delete_topics(set(names))

    # -- classic groups

    def _find_classic(self, group_id: str) -> ClassicGroup | None:
        group = self.groups.get(group_id)
        if group is None or isinstance(group, ClassicGroup):
            return group
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def _create_classic(self, group_id: str, now_ms: int) -> ClassicGroup:
        self.groups[group_id] = group = ClassicGroup(group_id, now_ms)
        return group

    # -- expiry

    def _expire_later(self) -> None:
        self._timers.schedule(_EXPIRY, self._settings.retention_check_interval_ms, self._expire)

    def _expire(self, now_ms: int) -> Decision:
        """Offsets that nobody has needed for long, and groups of which nothing is left."""
        self._expire_later()
        decision = Decision()
        for group in self.groups.values():
            expired = list(self.offset_requests.expired(group, now_ms))
            decision.records += [log_records.offset_tombstone(group.group_id, partition) for partition in expired]
            if self._is_over(group, expired):
                decision.records.append(log_records.group_tombstone(group.group_id))
        return decision

    def _is_over(self, group: Group, expired: list[TopicPartition]) -> bool:
        is_forgettable = isinstance(group, ClassicGroup) and group.state is State.EMPTY and group.is_empty
        return is_forgettable and self.offsets.partitions_of(group.group_id) <= set(expired)
