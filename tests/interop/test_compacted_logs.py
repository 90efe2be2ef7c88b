"""Compacted and retained logs: what one broker left, the other serves, and kafka-dump-log finds sound."""

import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from benchmarks.brokers import BrokerKind
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from programs import APACHE_KAFKA, SSKAFKA, JavaTools, Kcat, Message

DUMP = "org.apache.kafka.tools.DumpLogSegments"
KINDS = (APACHE_KAFKA, SSKAFKA)
WAIT_SECONDS_MAX = 60.0
SEGMENT = {"segment.bytes": str(1 << 20)}
QUICK = {
    "log.cleaner.backoff.ms": "200",
    "log.retention.check.interval.ms": "200",
    "log.segment.delete.delay.ms": "0",
    "transaction.state.log.num.partitions": "1",
}
LEFT_ALONE = {"log.cleaner.enable": "false", "log.retention.check.interval.ms": "100000000"}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
KEYS, ROUNDS = 100, 60


@dataclass(slots=True)
class Topics:
    """What a broker served of both topics."""

    table: list[Message]
    recent: list[Message]

    @property
    def state(self) -> dict[str | None, str | None]:
        return {one.key: one.value for one in self.table}


@dataclass(slots=True)
class Written:
    """The logs that a broker left. Its cleaner may have run until it was stopped."""

    by: str
    directory: Path
    before_stop: Topics
    left: Topics
    """As the same broker serves it when it is started without a cleaner."""


@pytest.fixture(scope="module", params=KINDS)
def written(
    request: pytest.FixtureRequest,
    broker_kind: Callable[[str], BrokerKind],
    tmp_path_factory: pytest.TempPathFactory,
    kcat_program: str,
) -> Written:
    directory = tmp_path_factory.mktemp("compacted")
    with broker_kind(request.param).running(directory, QUICK) as broker:
        create_topics(broker.bootstrap)
        write_table(broker.bootstrap)
        write_recent(broker.bootstrap)
        kcat = Kcat(kcat_program, broker.bootstrap)
        wait_until(lambda: len(kcat.consume("table")) < KEYS * ROUNDS // 3, "the table is compacted")
        if request.param == SSKAFKA:  # Apache Kafka closes no segment before the next record comes
            wait_until(lambda: len(kcat.consume("table")) == KEYS, "every key is there once")
        wait_until(lambda: kcat.consume("recent")[0].offset > 0, "old records are retired")
        before_stop = topics_at(kcat)
    with broker_kind(request.param).running(directory, LEFT_ALONE) as broker:
        left = topics_at(Kcat(kcat_program, broker.bootstrap))
    return Written(request.param, directory / "data", before_stop, left)


def topics_at(kcat: Kcat) -> Topics:
    return Topics(kcat.consume("table"), kcat.consume("recent"))


def create_topics(bootstrap: str) -> None:
    table = {**SEGMENT, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "3000"}
    recent = {**SEGMENT, "retention.bytes": str(2 << 20)}
    topics = [NewTopic("table", 1, 1, config=table), NewTopic("recent", 1, 1, config=recent)]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics(topics).values():
        created.result(WAIT_SECONDS_MAX)


def write_table(bootstrap: str) -> None:
    """Rounds over all keys, in every codec, by idempotent producers; some keys are deleted; some rounds aborted."""
    for number in range(ROUNDS):
        codec = CODECS[number % len(CODECS)]
        settings = {"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 20}
        if number % 10 == 5:
            write_transaction(settings, number, commit=number % 20 == 5)
        else:
            producer = Producer({**settings, "enable.idempotence": True})
            write_round(producer, number)
            assert producer.flush(WAIT_SECONDS_MAX) == 0


def write_transaction(settings: dict[str, object], number: int, *, commit: bool) -> None:
    producer = Producer({**settings, "transactional.id": f"round-{number}"})
    producer.init_transactions(WAIT_SECONDS_MAX)
    producer.begin_transaction()
    write_round(producer, number)
    producer.flush(WAIT_SECONDS_MAX)
    (producer.commit_transaction if commit else producer.abort_transaction)(WAIT_SECONDS_MAX)


def write_round(producer: Producer, number: int) -> None:
    for key in range(KEYS):
        is_tombstone = number == ROUNDS - 1 and key % 10 == 0
        value = None if is_tombstone else f"round {number} key {key} ".ljust(1000, "abcdefgh"[number % 8])
        producer.produce("table", value, f"key {key}", partition=0)


def write_recent(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for number in range(6000):
        producer.produce("recent", f"{number:06} ".ljust(1000, "r"), partition=0)
        producer.poll(0)
    assert producer.flush(WAIT_SECONDS_MAX) == 0


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


def dump(java: JavaTools, paths: list[Path], *options: str) -> list[str]:
    assert paths
    output = java.run(DUMP, "--files", ",".join(str(path) for path in paths), *options)
    return [line for line in output.splitlines() if not line.startswith(("Dumping ", "Log starting offset:"))]


def test_the_table_is_what_was_written(written: Written) -> None:
    for served in (written.before_stop, written.left):
        offsets = [one.offset for one in served.table]
        assert offsets == sorted(set(offsets))
        assert len(offsets) < KEYS * ROUNDS // 3
        for key in range(KEYS):
            value = served.state[f"key {key}"]
            assert value is None if key % 10 == 0 else (value or "").startswith(f"round {ROUNDS - 1} key {key} ")
        assert served.recent[-1].offset == 5999


def test_a_stop_only_leaves_out_what_was_cleaned_or_retired(written: Written) -> None:
    before, left = written.before_stop, written.left
    served = {one.offset: one for one in before.table}
    assert [one for one in left.table if served.get(one.offset) != one] == []
    assert left.state == before.state
    assert left.recent == before.recent[-len(left.recent) :]


@pytest.mark.parametrize("reader", KINDS)
def test_served_record_by_record_by(
    reader: str, written: Written, broker_kind: Callable[[str], BrokerKind], kcat_program: str, tmp_path: Path
) -> None:
    shutil.copytree(written.directory, tmp_path / "data")
    with broker_kind(reader).running(tmp_path, LEFT_ALONE) as broker:
        kcat = Kcat(kcat_program, broker.bootstrap)
        assert kcat.consume("table") == written.left.table
        assert kcat.consume("recent") == written.left.recent


@pytest.mark.parametrize("cleaner", KINDS)
def test_compacted_further_by(
    cleaner: str, written: Written, broker_kind: Callable[[str], BrokerKind], kcat_program: str, tmp_path: Path
) -> None:
    """One goes on where the other stopped: from its checkpoint, over its delete horizons and empty batches."""
    shutil.copytree(written.directory, tmp_path / "data")
    with broker_kind(cleaner).running(tmp_path, QUICK) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5})
        for key in range(KEYS * 15):
            producer.produce("table", f"later {key}".ljust(1000, "x"), f"key {key % KEYS}", partition=0)
        assert producer.flush(WAIT_SECONDS_MAX) == 0
        kcat = Kcat(kcat_program, broker.bootstrap)
        wait_until(lambda: not any("round" in (one.value or "") for one in kcat.consume("table")), "the old rounds go")
        state = {one.key: one.value for one in kcat.consume("table")}
        assert all((value or "").startswith("later ") for value in state.values())
        assert len(state) == KEYS


def test_dump_log_reads_every_batch(written: Written, java: JavaTools) -> None:
    logs = sorted(written.directory.glob("table-0/*.log")) + sorted(written.directory.glob("recent-0/*.log"))
    lines = dump(java, logs, "--print-data-log")
    batches = [line for line in lines if line.startswith("baseOffset:")]
    records = [line for line in lines if line.startswith("| offset:")]
    assert len(batches) + len(records) == len(lines)
    assert all("isvalid: true" in line for line in batches)
    has_horizon = any(re.search(r"deleteHorizonMs: (OptionalLong\[)?\d+", line) for line in batches)
    assert has_horizon or written.by == APACHE_KAFKA, "Apache Kafka closes no segment before the next record comes"
    assert len([line for line in records if "payload:" in line or "key:" in line]) >= len(written.left.table)


def test_dump_log_finds_the_indexes_sound(written: Written, java: JavaTools) -> None:
    indexes = [
        path for suffix in ("index", "timeindex") for path in sorted(written.directory.glob(f"table-0/*.{suffix}"))
    ]
    verified = dump(java, indexes, "--verify-index-only")
    assert [line for line in verified if not line.endswith(".index is empty.")] == []
    checked = dump(java, indexes, "--index-sanity-check")
    assert [line for line in checked if not line.endswith(("passed sanity check.", ".index is empty."))] == []


def test_the_checkpoint_has_kafkas_form(written: Written) -> None:
    version, count, *lines = (written.directory / "cleaner-offset-checkpoint").read_text().splitlines()
    assert version == "0"
    assert int(count) == len(lines)
    assert any(re.fullmatch(r"table 0 \d+", line) for line in lines)
