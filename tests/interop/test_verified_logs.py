"""`sskafka log verify` on what Apache Kafka wrote: it finds nothing wrong, and what it repairs Apache Kafka opens."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.brokers import BrokerKind
from programs import APACHE_KAFKA, JavaTools, Kcat
from written import create_topics, write_segments, write_transactions

from sskafka.storage.disk import OsDisk
from sskafka.storage.verification.directory import verify_directory
from sskafka.storage.verification.repair import repair_directory

RECORDS = 8000


@pytest.fixture(scope="module")
def data(broker_kind: Callable[[str], BrokerKind], tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("verified")
    with broker_kind(APACHE_KAFKA).running(directory, {"transaction.state.log.num.partitions": "1"}) as broker:
        create_topics(broker)
        write_segments(broker)
        write_transactions(broker)
        shutil.copytree(directory / "data", directory / "unclean", ignore=shutil.ignore_patterns(".lock"))
    return directory / "data"


def test_what_apache_kafka_leaves_is_sound(data: Path) -> None:
    report = verify_directory(str(data))
    assert report.all_findings == []
    assert {"segments-0", "transactions-0", "__cluster_metadata-0"} <= {one.name for one in report.partitions}


def test_so_is_what_a_crash_leaves(data: Path) -> None:
    """Indexes with room set aside behind their entries are no damage."""
    report = verify_directory(str(data.parent / "unclean"))
    assert report.damages == []


def test_apache_kafka_opens_what_was_repaired(
    data: Path, tmp_path: Path, java: JavaTools, broker_kind: Callable[[str], BrokerKind], kcat_program: str
) -> None:
    copy = tmp_path / "data"
    shutil.copytree(data, copy, ignore=shutil.ignore_patterns(".lock"))
    logs = sorted((copy / "segments-0").glob("*.log"))
    for index in [*copy.glob("segments-0/*.index"), *copy.glob("transactions-0/*.txnindex")]:
        index.unlink()
    logs[0].with_suffix(".timeindex").write_bytes(b"torn")
    (copy / "segments-0" / "leader-epoch-checkpoint").write_text("nonsense")
    with logs[-1].open("ab") as file:
        file.write(logs[-1].read_bytes()[:1000])
    repairs = list(repair_directory(OsDisk(), verify_directory(str(copy)), now_ms=0))
    assert [one.is_done for one in repairs] == [True, True]
    assert verify_directory(str(copy)).all_findings == []
    indexes = ",".join(str(path) for path in sorted(copy.glob("segments-0/*.*index")))
    checked = java.run("org.apache.kafka.tools.DumpLogSegments", "--verify-index-only", "--files", indexes)
    assert [line for line in checked.splitlines() if not line.startswith("Dumping ")] == []
    with broker_kind(APACHE_KAFKA).running(tmp_path) as broker:
        kcat = Kcat(kcat_program, broker.bootstrap)
        assert [one.offset for one in kcat.consume("segments")] == list(range(RECORDS))
        committed = kcat.consume("transactions", "-X", "isolation.level=read_committed")
        assert len(committed) == 15
