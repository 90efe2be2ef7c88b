"""A compacted log behaves like a dict: through puts, tombstones, transactions, compactions, stops and crashes."""

from random import Random

from compacting import LIMITS, batches_of, committed_pairs, compact, put
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from logs import NOW_MS, marker, reopen
from simulated_disk import SimulatedDisk

from sskafka.records.batch import DELETE_HORIZON
from sskafka.records.compression import Compression
from sskafka.storage.log_config import LogConfig

KEYS = st.sampled_from([b"a", b"b", b"c", b"d", b"a longer key", b""])
VALUES = st.one_of(st.none(), st.binary(max_size=40))
PAIRS = st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=5)
PRODUCER_ID = 7
RETENTION_MS = 1000


class CompactionAgainstDict(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.disk = SimulatedDisk()
        self.now_ms = NOW_MS
        self.sequence = 0
        self.model: dict[bytes, bytes | None] = {}
        self.newest: dict[bytes, int] = {}  # the offset of each key's last record

    @initialize(segment_bytes=st.sampled_from([150, 400, 2000]))
    def open(self, segment_bytes: int) -> None:
        self.config = LogConfig(
            segment_bytes=segment_bytes,
            index_interval_bytes=100,
            cleanup_policy=("compact",),
            delete_retention_ms=RETENTION_MS,
        )
        self.log = reopen(self.disk, self.config)

    # ---- writing

    @rule(pairs=PAIRS, codec=st.sampled_from(Compression))
    def put(self, pairs: list[tuple[bytes, bytes | None]], codec: Compression) -> None:
        self._remember(pairs, put(self.log, *pairs, now_ms=self.now_ms, compression=codec))

    @rule(pairs=PAIRS)
    def put_idempotently(self, pairs: list[tuple[bytes, bytes | None]]) -> None:
        fields = {"producer_id": PRODUCER_ID, "producer_epoch": 0, "base_sequence": self.sequence}
        self._remember(pairs, put(self.log, *pairs, now_ms=self.now_ms, **fields))
        self.sequence += len(pairs)

    @rule(pairs=PAIRS, more=PAIRS, commit=st.booleans(), producer_id=st.integers(20, 22))
    def transact(
        self,
        pairs: list[tuple[bytes, bytes | None]],
        more: list[tuple[bytes, bytes | None]],
        commit: bool,
        producer_id: int,
    ) -> None:
        epoch = self.log.log_end_offset % 30000  # a new one for each, so that sequences begin anew
        fields = {"producer_id": producer_id, "producer_epoch": epoch, "transactional": True}
        first = put(self.log, *pairs, now_ms=self.now_ms, base_sequence=0, **fields)
        second = put(self.log, *more, now_ms=self.now_ms, base_sequence=len(pairs), **fields)
        self.log.append_as_leader(marker(producer_id, epoch, commit=commit), 0, self.now_ms, from_client=False)
        if commit:
            self._remember(pairs, first)
            self._remember(more, second)

    def _remember(self, pairs: list[tuple[bytes, bytes | None]], base_offset: int) -> None:
        for place, (key, value) in enumerate(pairs):
            self.model[key] = value
            self.newest[key] = base_offset + place

    @rule(passed_ms=st.sampled_from([1, 100, RETENTION_MS, 10 * RETENTION_MS]))
    def time_passes(self, passed_ms: int) -> None:
        self.now_ms += passed_ms

    @rule()
    def roll(self) -> None:
        self.log.maybe_roll(self.now_ms + 10**12)

    # ---- compaction

    @rule(map_slots=st.sampled_from([17, 40, 10_000]))
    def compact(self, map_slots: int) -> None:
        stats = compact(self.log, self.now_ms, LIMITS._replace(map_bytes=24 * map_slots))
        if stats is None:
            return
        seen: set[bytes | None] = set()
        for header, records in batches_of(self.log):
            for record in records:
                if not header.is_control and record.offset < stats.end_offset:
                    assert record.key not in seen, "a key was left twice in what is clean"
                    seen.add(record.key)

    # ---- stops

    @rule()
    def stop_and_start(self) -> None:
        self.log.close()
        self._open_again(was_clean_stop=True, recovery_point=self.log.log_end_offset)

    @rule()
    def kill_and_start(self) -> None:
        self._open_again(recovery_point=self.log.recovery_point)

    @rule(seed=st.integers(0, 2**32))
    def cut_power_after_a_flush(self, seed: int) -> None:
        self.log.flush()
        self.disk.crash(Random(seed))
        self._open_again(recovery_point=self.log.recovery_point)

    def _open_again(self, **options: object) -> None:
        end, dirty = self.log.log_end_offset, self.log.first_dirty_offset
        self.log = reopen(self.disk, self.config, cleaned_before=dirty, **options)
        assert (self.log.log_end_offset, self.log.first_dirty_offset) == (end, dirty)

    # ---- what must hold

    @invariant()
    def a_reader_from_the_start_sees_the_final_state(self) -> None:
        if not hasattr(self, "log"):
            return
        state: dict[bytes | None, bytes | None] = {}
        last_offset = -1
        for offset, key, value in committed_pairs(self.log):
            assert offset > last_offset, "offsets in order"
            last_offset = offset
            state[key] = value
            assert key is not None
            if offset == self.newest[key]:
                assert value == self.model[key]
        alive = {key: value for key, value in self.model.items() if value is not None}
        assert {key: value for key, value in state.items() if value is not None} == alive

    @invariant()
    def young_tombstones_are_there(self) -> None:
        if not hasattr(self, "log"):
            return
        for header, _ in batches_of(self.log):
            if header.attributes & DELETE_HORIZON:
                assert header.base_timestamp <= self.now_ms + RETENTION_MS

    @invariant()
    def the_producer_goes_on(self) -> None:
        if self.sequence:
            assert self.log.producers.producers[PRODUCER_ID].next_sequence == self.sequence


CompactionAgainstDict.TestCase.settings = settings(max_examples=50, stateful_step_count=25, deadline=None)
TestCompactionAgainstDict = CompactionAgainstDict.TestCase
