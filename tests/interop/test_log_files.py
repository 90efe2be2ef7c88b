"""Files on disk: each broker opens what the other wrote, and kafka-dump-log finds nothing to complain of."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.brokers import BrokerKind
from programs import APACHE_KAFKA, SSKAFKA, JavaTools, Kcat
from written import PARTITIONS, Written, read_all, read_committed, write_logs

DUMP = "org.apache.kafka.tools.DumpLogSegments"
KINDS = (APACHE_KAFKA, SSKAFKA)


@pytest.fixture(scope="module", params=KINDS)
def written(
    request: pytest.FixtureRequest,
    broker_kind: Callable[[str], BrokerKind],
    tmp_path_factory: pytest.TempPathFactory,
    kcat_program: str,
    java: JavaTools,
) -> Written:
    kind, directory = broker_kind(request.param), tmp_path_factory.mktemp("written")
    return write_logs(kind, directory, kcat_program, java, transactions=request.param == APACHE_KAFKA)


def files(directory: Path, *patterns: str) -> list[Path]:
    found = [
        path for topic, number in PARTITIONS for path in directory.glob(f"{topic}-{number}/*") if path.match("*.*")
    ]
    return sorted(path for path in found if any(path.match(pattern) for pattern in patterns))


def dump(java: JavaTools, paths: list[Path], *options: str) -> list[str]:
    """One line a finding; the headings and the class-path noise are left out."""
    assert paths
    output = java.run(DUMP, "--files", ",".join(str(path) for path in paths), *options)
    return [line for line in output.splitlines() if not line.startswith(("Dumping ", "Log starting offset:"))]


def test_everything_written_was_read(written: Written) -> None:
    counts = {place: len(messages) for place, messages in written.records.items()}
    xerial = [
        one for place in (0, 1) for one in written.records["codecs", place] if (one.value or "").startswith("xerial")
    ]
    assert counts["codecs", 0] + counts["codecs", 1] == 5 * 200 + 50
    assert len(xerial) == 50
    assert counts["segments", 0] == 8000
    assert {one.timestamp_type for one in written.records["stamped", 0]} == {"logappend"}
    assert [one.offset for one in written.records["trimmed", 0]] == list(range(10, 20))
    assert len(files(written.clean, "*.log")) >= 3 + len(PARTITIONS)
    assert written.committed is None or len(written.committed) == 15


@pytest.mark.parametrize("stop", ["clean", "unclean"])
@pytest.mark.parametrize("reader", KINDS)
def test_served_record_by_record_by(
    reader: str,
    stop: str,
    written: Written,
    broker_kind: Callable[[str], BrokerKind],
    kcat_program: str,
    tmp_path: Path,
) -> None:
    shutil.copytree(written.clean if stop == "clean" else written.unclean, tmp_path / "data")
    with broker_kind(reader).running(tmp_path) as broker:
        kcat = Kcat(kcat_program, broker.bootstrap)
        served = read_all(kcat)
        if stop == "unclean":
            # A crash may forget that records were deleted; it must not lose those that were not.
            served["trimmed", 0] = served["trimmed", 0][-len(written.records["trimmed", 0]) :]
        assert served == written.records
        kcat.produce("segments", ["one more"])
        assert [(one.offset, one.value) for one in kcat.consume("segments", offset="-1")] == [(8000, "one more")]
        middle = written.records["segments", 0][4000]
        assert kcat.consume("segments", offset=f"s@{middle.timestamp}")[0].timestamp == middle.timestamp


@pytest.mark.parametrize("written", [APACHE_KAFKA], indirect=True)  # the one that writes transactions
@pytest.mark.parametrize("reader", KINDS)
def test_aborted_records_stay_hidden_from_read_committed(
    reader: str, written: Written, broker_kind: Callable[[str], BrokerKind], kcat_program: str, tmp_path: Path
) -> None:
    assert written.committed is not None
    shutil.copytree(written.clean, tmp_path / "data")
    with broker_kind(reader).running(tmp_path) as broker:
        kcat = Kcat(kcat_program, broker.bootstrap)
        assert read_committed(kcat) == written.committed
        uncommitted = kcat.consume("transactions", "-X", "isolation.level=read_uncommitted")
        assert len(uncommitted) > len(written.committed)


def test_dump_log_reads_every_record(written: Written, java: JavaTools) -> None:
    lines = dump(java, files(written.clean, "*.log"), "--print-data-log")
    batches = [line for line in lines if line.startswith("baseOffset:")]
    records = [line for line in lines if line.startswith("| offset:")]
    assert len(batches) + len(records) == len(lines), "some line is neither a batch nor a record"
    assert all("isvalid: true" in line for line in batches)
    payloads = {line.partition("payload: ")[2] for line in records if "payload: " in line}
    values = {one.value for messages in written.records.values() for one in messages if one.value is not None}
    assert values <= payloads


def test_dump_log_finds_the_indexes_sound(written: Written, java: JavaTools) -> None:
    """A log with few batches has no entry in its offset index, and the tool says so before it checks."""
    indexes = files(written.clean, "*.index", "*.timeindex")
    verified = dump(java, indexes, "--verify-index-only")
    assert [line for line in verified if not line.endswith(".index is empty.")] == []
    checked = dump(java, indexes, "--index-sanity-check")
    assert [line for line in checked if not line.endswith(("passed sanity check.", ".index is empty."))] == []
    assert len(checked) == len(indexes)


def test_indexes_are_sparse_and_filled(written: Written, java: JavaTools) -> None:
    rolled = files(written.clean, "segments-0/*.index", "segments-0/*.timeindex")[:2]
    entries = dump(java, rolled)
    positions = [int(match[1]) for line in entries if (match := re.match(r"offset: \d+ position: (\d+)", line))]
    times = [line for line in entries if re.match(r"timestamp: \d+ offset: \d+", line)]
    assert len(positions) > 10
    assert positions == sorted(positions)
    assert times


def test_dump_log_reads_producer_snapshots(written: Written, java: JavaTools) -> None:
    lines = dump(java, files(written.clean, "segments-0/*.snapshot"))
    assert lines
    fields = r"producerId: \d+ producerEpoch: 0 coordinatorEpoch: -1 currentTxnFirstOffset: \S+ lastTimestamp: \d+"
    assert [line for line in lines if not re.match(fields, line)] == []
    assert any("lastSequence: 7999" in line for line in lines)


def test_dump_log_decodes_the_metadata_log(written: Written, java: JavaTools) -> None:
    log = sorted((written.clean / "__cluster_metadata-0").glob("*.log"))
    lines = dump(java, log, "--cluster-metadata-decoder", "--skip-record-metadata")
    text = "\n".join(lines)
    expected = {"FEATURE_LEVEL_RECORD", "REGISTER_BROKER_RECORD", "TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD"}
    assert expected <= set(re.findall(r'"type":"([A-Z_]+)"', text))
    topics = re.findall(r'"TOPIC_RECORD","version":0,"data":{"name":"([^"]+)"', text)
    assert dict(PARTITIONS).keys() <= set(topics)
    assert "Could not" not in text
    assert "skipping" not in text


def test_storage_tool_accepts_the_directory(written: Written, java: JavaTools) -> None:
    properties = written.clean.parent / "server.properties"
    answer = java.run("kafka.tools.StorageTool", "info", "-c", str(properties))
    assert "Found log directory" in answer
    assert "problem" not in answer
